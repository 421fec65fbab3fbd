"""The tools of `sleuth mcp` over HTTP, for the owner of the key; runs are background runs of the server."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Step
from sleuth.studio.mcp import Events
from sleuth.studio.server.access import Access, access_of
from sleuth.studio.server.state import ServerState
from sleuth.tools.collection import Collection
from sleuth.tools.errors import RunError


@dataclass(frozen=True, kw_only=True)
class ServerBackend:
    """One owner's documents and runs on a server; a run continues if its client disconnects."""

    server: ServerState
    owner: str

    @asynccontextmanager
    async def collection(self) -> AsyncIterator[Collection]:
        """Open the owner's documents."""
        async with self.server.home_lock.hold("shared"):
            yield await self.server.tenants.collection(self.owner)

    async def ask(self, question: str, method: str, *, values: dict[str, Any], budget: Budget, where: str) -> Events:
        """Start a background run and follow it to its end."""
        access = await access_of(self.server, self.owner)
        await access.require_ready(where)
        thread = await access.start(question, method, values=values, budget=budget, where=where)
        async for event in _follow(access, thread, after=0):
            yield event

    async def resume(self, thread: str, budget: Budget | None) -> Events:
        """Resume a run of the owner in the background."""
        access = await access_of(self.server, self.owner)
        id = (await access.thread(thread)).id
        await self.server.quota.require(self.owner)
        stored = await self.server.log.after(id, 0)
        await self.server.run_worker.start(self.owner, id, budget=budget, expect_listener=False)
        async for event in _follow(access, id, after=stored[-1].id if stored else 0):
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
