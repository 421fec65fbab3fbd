"""The server's long-lived resources, created at startup and closed at shutdown."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from fastapi import Depends, FastAPI, Request

from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.persistence.threads import Threads
from sleuth.graphs.runs.service import RunService
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


@dataclass(frozen=True, kw_only=True)
class ServerState:
    """The resources that routes use."""

    settings: Settings
    tenants: Tenants
    telemetry: Telemetry
    log: EventLog
    run_worker: RunWorker
    quota: Quota
    ingestion: IngestionWorker
    home_lock: HomeLock
    readiness: ReadinessProbe
    examples: ExampleQuestions

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
        log, home_lock = await asyncio.to_thread(EventLog, store.engine), HomeLock(settings.home, "sleuth serve")
        quota = await asyncio.to_thread(partial(Quota, store.engine, tokens_a_day=settings.tokens_a_day))
        run_worker = await asyncio.to_thread(
            RunWorker, tenants=tenants, log=log, home_lock=home_lock, quota=quota, telemetry=telemetry
        )
        uploads = await asyncio.to_thread(Uploads, store.engine, settings.home / "uploads")
        ingestion = IngestionWorker(tenants, home_lock, uploads, telemetry)
        await ingestion.recover()
        server = ServerState(
            settings=settings,
            tenants=tenants,
            telemetry=telemetry,
            log=log,
            run_worker=run_worker,
            quota=quota,
            ingestion=ingestion,
            home_lock=home_lock,
            readiness=ReadinessProbe(settings, store.engine),
            examples=ExampleQuestions(tenants, quota),
        )
        telemetry.watch(ingests=lambda: ingestion.waiting)
        await log.remove_orphans()
        await adopt_follow_ups(store.engine)
        await stack.enter_async_context(_background_task(_complete_results(store)))
        await stack.enter_async_context(_background_task(run_worker.watch()))
        stack.push_async_callback(server.close)
        await run_worker.recover()
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
