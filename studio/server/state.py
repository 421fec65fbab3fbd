"""The server's long-lived resources, created at startup and closed at shutdown."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request

from sleuth.agents.formatting import Turn
from sleuth.graphs.chat.question_rewriting import RewrittenQuestion, rewrite_question
from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence import Store, Threads, open_store
from sleuth.graphs.runs import RunService, remove_runs
from sleuth.studio.server.ingestion import IngestionWorker, Uploads
from sleuth.studio.server.locks import SharedHomeLock
from sleuth.studio.server.middleware.limits import Quota
from sleuth.studio.server.runs import Conversations, EventLog
from sleuth.studio.server.runs.examples import ExampleQuestions
from sleuth.studio.server.runs.peers import Peers
from sleuth.studio.server.runs.worker import RunWorker
from sleuth.studio.server.telemetry import ReadinessProbe, Telemetry
from sleuth.studio.server.tenants import ModelOpener, Tenants
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings


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
    home_lock: SharedHomeLock
    conversations: Conversations
    readiness: ReadinessProbe
    examples: ExampleQuestions

    def is_operator(self, owner: str) -> bool:
        """Return whether an owner may see what belongs to others."""
        return not self.settings.has_keys or owner == self.settings.operator

    async def require_ready(self, owner: str, where: str = "") -> None:
        """Check that an owner can start a run.

        Raises:
            StoreBusy: the server is shutting down.
            UsageError: the owner has no documents, or none that match the filter.
            QuotaUsedUp: the owner's daily token quota is exhausted.
        """
        self.run_worker.require_open()
        await (await self.tenants.collection(owner)).require_documents(where)
        await self.quota.require(owner)

    async def start_run(
        self,
        owner: str,
        question: str,
        method: str,
        *,
        values: dict[str, Any],
        budget: Budget,
        where: str = "",
        thread: str | None = None,
        expect_listener: bool = False,
    ) -> str:
        """Start a background run and return its thread; raise UsageError for an invalid question or setting."""
        runs = await self.tenants.read_only_runs(owner)
        id = await runs.start(
            question,
            method,
            values=values,
            profile=self.settings.profile,
            budget=budget,
            thread=thread,
            where=where,
        )
        await self.run_worker.start(owner, id, expect_listener=expect_listener)
        return id

    async def remove_run(self, runs: RunService, thread: str) -> None:
        """Delete a run with its checkpoints, texts and events, and all runs below it; see `remove_runs`."""
        await self.run_worker.require_idle(thread)
        for removed in await remove_runs(runs, thread):
            await self.log.remove(removed.id)
            await self.conversations.remove(removed.id)

    async def rewrite_follow_up(self, owner: str, message: str, turns: Sequence[Turn]) -> RewrittenQuestion:
        """Rewrite a message of a conversation into a self-contained question, charged to the owner's quota.

        Raises:
            QuotaUsedUp: the owner's daily token quota is exhausted.
            ModelError: the model server cannot be used.
        """
        await self.quota.require(owner)
        runs = await self.tenants.runs(owner)
        assert runs.services
        services = runs.services
        made = await rewrite_question(
            message,
            turns,
            model=services.model,
            archive=runs.store.archive,
            tracing=services.tracing,
            trace_texts=services.trace_texts,
        )
        await self.quota.add(owner, sum(c["prompt_tokens"] + c["completion_tokens"] for c in made.calls.values()))
        return made

    async def close(self) -> None:
        """Interrupt all work and end its streams; the next start resumes the work."""
        self.ingestion.close()
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
        log, home_lock = await asyncio.to_thread(EventLog, store.engine), SharedHomeLock(settings.home)
        limits = {"tokens_a_day": settings.tokens_a_day, "requests_a_minute": settings.requests_a_minute}
        quota = await asyncio.to_thread(partial(Quota, store.engine, **limits))
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
            conversations=await asyncio.to_thread(Conversations, store.engine),
            readiness=ReadinessProbe(settings, store.engine),
            examples=ExampleQuestions(tenants, quota),
        )
        telemetry.watch(ingests=lambda: ingestion.waiting, events=lambda: log.waiting)
        await log.remove_orphans()
        await server.conversations.remove_orphans()
        await stack.enter_async_context(_background_task(log.run()))
        await stack.enter_async_context(_background_task(ingestion.run()))
        await stack.enter_async_context(_background_task(_complete_results(store)))
        await stack.enter_async_context(_background_task(Peers(store.engine, run_worker, log).run()))
        stack.push_async_callback(server.close)
        await run_worker.recover()
        yield server


async def _complete_results(store: Store) -> None:
    """Record the results of runs that an older release finished, so that they can be filtered and searched."""
    for thread in await store.threads.list_all_owners():
        if thread.outcome == "done":
            own = await asyncio.to_thread(Threads, store.engine, thread.owner, store.locks)
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
