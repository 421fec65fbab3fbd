"""The tools of `sleuth mcp` over HTTP, for the owner of the key; runs are background runs of the server."""

import json
from uuid import uuid4

from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Step
from sleuth.graphs.runs.request import RunRequest
from sleuth.studio.mcp_backends import BUDGET_KEPT, Backend, Events
from sleuth.studio.server.state import Access
from sleuth.tools.errors import RunError, ThreadBusy


class ServerBackend(Backend):
    """One owner's documents and runs on a server; a run continues if its client disconnects."""

    def __init__(self, access: Access) -> None:
        super().__init__(access.server.tenants, access.owner)
        self.access = access

    def name_of(self, id: str) -> str:
        """Return the name by which the owner knows a thread."""
        return self.access.public_id(id)

    async def id_of(self, name: str) -> str:
        """Return the id of a thread of the owner."""
        return (await self.access.thread(name)).id

    async def new_id(self, name: str | None) -> str:
        """Return the id of a new thread of the owner."""
        return await self.access.id_for(name) if name else uuid4().hex[:12]

    async def ask(self, request: RunRequest) -> Events:
        """Start a background run; return its events to its end."""
        await self.access.require_ready(request.where)
        thread = await self.access.start(request)
        return _follow(self.access, thread, after=0)

    async def resume(self, id: str, budget: Budget | None) -> Events:
        """Resume a run of the owner in the background, or follow one that is running."""
        server, owner = self.access.server, self.access.owner
        await server.quota.require(owner)
        last = await server.log.last(id)
        if not await server.run_worker.is_running(id):
            await server.run_worker.start(owner, id, budget=budget)
        elif budget:
            raise ThreadBusy(BUDGET_KEPT.format(self.name_of(id)))
        return _follow(self.access, id, after=last)


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
