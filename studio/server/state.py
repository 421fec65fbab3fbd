"""The server's long-lived resources, created at startup and closed at shutdown."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, FastAPI, Request

from sleuth.graphs.persistence import Store, Threads, open_store
from sleuth.graphs.runs import RunService
from sleuth.studio.server.ingestion.uploads import Uploads
from sleuth.studio.server.ingestion.worker import IngestionWorker
from sleuth.studio.server.middleware.limits import Quota
from sleuth.studio.server.runs.conversations import adopt_follow_ups
from sleuth.studio.server.runs.event_log import EventLog
from sleuth.studio.server.runs.examples import ExampleQuestions
from sleuth.studio.server.runs.worker import RunWorker
from sleuth.studio.server.telemetry.metrics import Telemetry
from sleuth.studio.server.telemetry.readiness import ReadinessProbe
from sleuth.studio.server.tenants import ModelOpener, Tenants
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage import HomeLock


class ServerState:
    """The resources that routes use."""

    def __init__(self, tenants: Tenants, telemetry: Telemetry) -> None:
        """Create missing tables; blocks."""
        self.settings, self.tenants, self.telemetry = tenants.settings, tenants, telemetry
        engine = tenants.store.engine
        self.home_lock = HomeLock(self.settings.home, "sleuth serve")
        self.log = EventLog(engine)
        self.quota = Quota(engine, tokens_a_day=self.settings.tokens_a_day)
        self.run_worker = RunWorker(
            tenants=tenants, log=self.log, home_lock=self.home_lock, quota=self.quota, telemetry=telemetry
        )
        uploads = Uploads(engine, self.settings.home / "uploads")
        self.ingestion = IngestionWorker(tenants, self.home_lock, uploads, telemetry)
        self.readiness = ReadinessProbe(self.settings, engine)
        self.examples = ExampleQuestions(tenants, self.quota)

    def is_operator(self, owner: str) -> bool:
        """Return whether an owner may see what belongs to others."""
        return not self.settings.has_keys or owner == self.settings.operator

    async def close(self) -> None:
        """Interrupt all work and end its streams; the next start resumes the work."""
        await self.ingestion.close()
        await self.examples.close()
        await self.run_worker.close()


@asynccontextmanager
async def open_server_state(
    settings: Settings, *, open_model: ModelOpener, telemetry: Telemetry, embedder: Embedder | None = None
) -> AsyncIterator[ServerState]:
    """Open the store, start the workers, and resume the work of the previous server."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings))
        resources = await stack.enter_async_context(AsyncExitStack())
        tenants = Tenants(settings, store, open_model, embedder, resources)
        server = await asyncio.to_thread(ServerState, tenants, telemetry)
        await server.ingestion.recover()
        await server.log.remove_orphans()
        await adopt_follow_ups(store.engine)
        await stack.enter_async_context(_background_task(_complete_results(store)))
        await stack.enter_async_context(_background_task(server.run_worker.watch()))
        stack.push_async_callback(server.close)
        await server.run_worker.recover()
        yield server


async def _complete_results(store: Store) -> None:
    """Record the results of runs that an older release finished, so that they can be filtered and searched."""
    for thread in await store.threads.list_all_owners():
        if thread.outcome == "done":
            own = Threads(store.engine, thread.owner, store.locks)
            await RunService(replace(store, threads=own)).with_results([thread])


@asynccontextmanager
async def _background_task(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run a coroutine while the block is open, then cancel it."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def server_state_of(app: FastAPI) -> ServerState:
    """Return the state of an application that was started."""
    server = app.state.server
    assert isinstance(server, ServerState)
    return server


def _server_state(request: Request) -> ServerState:
    return server_state_of(request.app)


ServerStateDep = Annotated[ServerState, Depends(_server_state)]
