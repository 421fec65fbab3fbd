"""The tools of `sleuth mcp` over HTTP, for the owner of the key; runs are background runs of the server."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Step
from sleuth.studio.mcp import Events
from sleuth.studio.server.state import Access
from sleuth.tools.collection import Collection
from sleuth.tools.errors import RunError


@dataclass(frozen=True)
class ServerBackend:
    """One owner's documents and runs on a server; a run continues if its client disconnects."""

    access: Access

    @asynccontextmanager
    async def collection(self) -> AsyncIterator[Collection]:
        """Open the owner's documents."""
        async with self.access.server.home_lock.hold("search"):
            yield await self.access.server.tenants.collection(self.access.owner)

    async def ask(
        self, question: str, method: str | None, *, values: dict[str, Any], budget: Budget, where: str
    ) -> Events:
        """Start a background run and follow it to its end."""
        await self.access.require_ready(where)
        method = method or await self.access.server.tenants.default_method()
        thread = await self.access.start(question, method, values=values, budget=budget, where=where)
        async for event in _follow(self.access, thread, after=0):
            yield event

    async def resume(self, thread: str, budget: Budget | None) -> Events:
        """Resume a run of the owner in the background."""
        server, owner = self.access.server, self.access.owner
        id = (await self.access.thread(thread)).id
        await server.quota.require(owner)
        last = await server.log.last(id)
        await server.run_worker.start(owner, id, budget=budget)
        async for event in _follow(self.access, id, after=last):
            yield event


async def _follow(access: Access, thread: str, *, after: int) -> Events:
    """Yield the steps, then the stored answer when the thread is unlocked."""
    problem = ""
    async for event in access.follow(thread, after):
        match event.name:
            case "step":
                yield Step(**json.loads(event.data))
            case "error":
                problem = str(json.loads(event.data)["message"])
            case "stopped":
                problem = "The run was stopped."
    if problem:
        raise RunError(problem)
    yield await access.runs.answer(thread)
