"""The tools of `sleuth mcp` over HTTP, for the owner of the key; runs are the server's own."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sleuth.graphs.core import Budget, Step
from sleuth.studio.mcp import Asked, Events
from sleuth.studio.server.state import House
from sleuth.tools.collection import Collection
from sleuth.tools.errors import RunError


@dataclass(frozen=True, kw_only=True)
class Served:
    """One owner's documents and runs in a server; a run goes on also when its client is gone."""

    house: House
    owner: str

    @asynccontextmanager
    async def library(self) -> AsyncIterator[Collection]:
        """The owner's documents."""
        async with self.house.door.open("shared"):
            yield await self.house.tenants.library(self.owner)

    async def ask(self, asked: Asked) -> Events:
        """A run in the background, followed to its end."""
        await (await self.house.tenants.library(self.owner)).require_documents()
        await self.house.quota.require(self.owner)
        runs, profile = await self.house.tenants.reading(self.owner), self.house.settings.profile
        thread = await runs.start(
            asked.question, asked.method, values=asked.values, profile=profile, budget=asked.budget
        )
        await self.house.jobs.begin(self.owner, thread, heard=False)
        async for event in self._followed(thread, after=0):
            yield event

    async def resume(self, thread: str, budget: Budget | None) -> Events:
        """Goes on with a run of the owner's in the background."""
        await (await self.house.tenants.reading(self.owner)).store.threads.get(thread)  # or it is not the owner's
        await self.house.quota.require(self.owner)
        told = await self.house.log.after(thread, 0)
        await self.house.jobs.begin(self.owner, thread, budget=budget, heard=False)
        async for event in self._followed(thread, after=told[-1].id if told else 0):
            yield event

    async def _followed(self, thread: str, *, after: int) -> Events:
        """The steps as they are told, then the answer as it is kept; not before the thread is free again."""
        jobs, problem = self.house.jobs, ""
        async for event in self.house.log.follow(thread, after, active=lambda: jobs.is_active(thread)):
            match event.name:
                case "step":
                    yield Step(**json.loads(event.data))
                case "error":
                    problem = str(json.loads(event.data)["message"])
                case "stopped":
                    problem = "The run was stopped."
        if problem:
            raise RunError(problem)
        yield await (await self.house.tenants.reading(self.owner)).answer(thread)
