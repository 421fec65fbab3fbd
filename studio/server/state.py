"""The server's long-lived resources, created at startup and closed at shutdown, and one owner's access to them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated
from uuid import uuid4

from fastapi import Depends, FastAPI, Request
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.types import StateSnapshot

from sleuth.agents.formatting import Turn
from sleuth.graphs.chat.messages import append_messages, messages_of
from sleuth.graphs.chat.question_rewriting import RewrittenQuestion, rewrite_question
from sleuth.graphs.chat.references import resolve_references
from sleuth.graphs.chat.sending import as_chat, send, settings_after
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.persistence.thread import Thread
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs.pruning import remove_runs
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.graphs.runs.turns import require_timely_reply
from sleuth.studio.server.ingestion import IngestionWorker, Uploads
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.middleware.limits import Quota
from sleuth.studio.server.runs.event_log import Event, EventLog
from sleuth.studio.server.runs.worker import RunWorker
from sleuth.studio.server.telemetry.metrics import Telemetry
from sleuth.studio.server.telemetry.readiness import ReadinessProbe
from sleuth.studio.tenants import ModelOpener, Tenants
from sleuth.tools.home import Home
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings

_log = logging.getLogger(__name__)


class ServerState:
    """The resources that routes use."""

    def __init__(self, tenants: Tenants, telemetry: Telemetry) -> None:
        """Create missing tables; blocks."""
        self.settings, self.tenants, self.telemetry = tenants.settings, tenants, telemetry
        engine = tenants.store.engine
        self.home_lock = tenants.store.home.lock
        self.log = EventLog(engine)
        self.quota = Quota(engine, tokens_a_day=self.settings.tokens_a_day)
        self.run_worker = RunWorker(tenants=tenants, log=self.log, quota=self.quota, telemetry=telemetry)
        uploads = Uploads(engine, self.settings.home / "uploads")
        self.ingestion = IngestionWorker(tenants, uploads, telemetry)
        self.readiness = ReadinessProbe(self.settings, engine)

    def is_operator(self, owner: str) -> bool:
        """Return whether an owner may see what belongs to others."""
        return not self.settings.has_keys or owner == self.settings.operator

    async def close(self) -> None:
        """Interrupt all work and end its streams; the next start resumes the work."""
        await self.ingestion.close()
        await self.run_worker.close()


@asynccontextmanager
async def open_server_state(
    settings: Settings, *, open_model: ModelOpener, telemetry: Telemetry, embedder: Embedder | None = None
) -> AsyncIterator[ServerState]:
    """Open the store, start the workers, and resume the work of the previous server."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings, Home(settings, "sleuth serve")))
        resources = await stack.enter_async_context(AsyncExitStack())
        tenants = Tenants(settings, store, open_model, embedder, resources)
        server = await asyncio.to_thread(ServerState, tenants, telemetry)
        await server.ingestion.recover()
        watching = asyncio.create_task(server.run_worker.watch())
        stack.push_async_callback(asyncio.wait, [watching])
        stack.callback(watching.cancel)
        stack.push_async_callback(server.close)
        await server.run_worker.recover()
        yield server


def server_state_of(app: FastAPI) -> ServerState:
    """Return the state of an application that was started."""
    server = app.state.server
    assert isinstance(server, ServerState)
    return server


def _server_state(request: Request) -> ServerState:
    return server_state_of(request.app)


ServerStateDep = Annotated[ServerState, Depends(_server_state)]


@dataclass(frozen=True, kw_only=True)
class Access:
    """One owner's threads, by the ids that clients use.

    Ids are unique among all owners. On a server with keys, a thread with a chosen id is stored as `owner:id`, so that
    nobody learns which ids others have chosen.
    """

    server: ServerStateDep
    owner: Owner

    @property
    def runs(self) -> RunService:
        """The owner's runs, for reading."""
        return self.server.tenants.read_only_runs(self.owner)

    async def find(self, name: str) -> Thread | None:
        """Return a thread of the owner, or None."""
        threads = self.runs.store.threads
        return await threads.find(name) or await threads.find(self.scoped_id(name))

    async def thread(self, name: str) -> Thread:
        """Return a thread; raise UnknownName for threads of others."""
        return await self.find(name) or await self.runs.store.threads.get(name)

    def scoped_id(self, name: str) -> str:
        """Return the id of a new thread with a chosen name."""
        return f"{self.owner}:{name}" if self.server.settings.has_keys else name

    async def id_for(self, name: str) -> str:
        """Return the id of the thread of this name; if there is none, that of a new one."""
        thread = await self.find(name)
        return thread.id if thread else self.scoped_id(name)

    def public_id(self, id: str) -> str:
        """Return the id by which the client knows a thread."""
        return id.removeprefix(f"{self.owner}:") if self.server.settings.has_keys else id

    async def require_ready(self, where: str = "") -> None:
        """Check that the owner can start a run.

        Raises:
            StoreBusy: the server is shutting down.
            UsageError: the owner has no documents, or none that match the filter.
            QuotaUsedUp: the owner's daily token quota is exhausted.
        """
        self.server.run_worker.require_open()
        await (await self.server.tenants.collection(self.owner)).require_documents(where)
        await self.server.quota.require(self.owner)

    async def start(self, request: RunRequest) -> str:
        """Start a background run, or send the next message of a chat, and return the thread.

        Raises:
            UsageError: an invalid question or setting.
        """
        default, profile = await self.server.tenants.default_method(), self.server.settings.profile
        request = as_chat(request.resolved(default_method=default, profile=profile))
        worker, chat = self.server.run_worker, None
        if request.kind.name == CHAT and request.thread and not request.after:
            chat = await self.runs.store.threads.find(request.thread)
        if chat and chat.method == CHAT and not chat.is_empty and chat.state != "waiting":
            id = await self._queue(chat, request)
        else:  # a reply to what the chat waits for does not wait
            id = await send(worker.runs(self.owner), request, seen=chat)
        await worker.begin(self.owner, id)
        return id

    async def _queue(self, chat: Thread, request: RunRequest) -> str:
        """Store the next message of a chat; its turn begins when the turns before it have ended."""
        require_timely_reply(chat, request.question)
        queue, values = self.server.run_worker.queue, chat.options.values
        for each in (*(await queue.messages(chat.id)).values(), request):
            values = settings_after(values, each)
        configure(runnable(CHAT), values, chat.options.profile)
        message = request.model_copy(update={"message_id": request.message_id or uuid4().hex})
        await queue.add_message(self.owner, message)
        return chat.id

    async def messages(self, chat: Thread, state: StateSnapshot) -> list[AnyMessage]:
        """Return all messages of a chat in its latest state, the queued ones last; see `messages_of`."""
        requests = (await self.server.run_worker.queue.messages(chat.id)).values()
        about = {"state": "queued", "problem": ""}
        queue = [HumanMessage(request.question, id=request.message_id, additional_kwargs=about) for request in requests]
        return append_messages(messages_of(chat, state), [queue])

    def follow(self, thread: str, after: int = 0, *, with_deltas: bool = False) -> AsyncGenerator[Event]:
        """Yield the events of a run after a number, to its end."""
        is_active = partial(self.server.run_worker.is_active, thread)
        return self.server.log.follow(thread, after, is_active=is_active, with_deltas=with_deltas)

    async def remove(self, thread: str) -> None:
        """Delete a run with its checkpoints, texts and events, and all runs below it; see `remove_runs`."""
        await self.server.run_worker.require_idle(thread)
        await remove_runs(self.runs, thread)
        await self.server.run_worker.queue.remove_messages(thread)

    async def rewrite_follow_up(self, message: str, turns: Sequence[Turn], method: str) -> RewrittenQuestion:
        """Rewrite a message of a conversation into a self-contained question, charged to the owner's quota.

        For a method without a model, rules rewrite it.

        Raises:
            QuotaUsedUp: the owner's daily token quota is exhausted.
            ModelError: the model server cannot be used.
        """
        if not runnable(method).needs_model:
            return RewrittenQuestion(question=resolve_references(message, turns), calls={}, warnings=[])
        await self.server.quota.require(self.owner)
        services = (await self.server.tenants.runs(self.owner)).services
        assert services
        rewriting = await rewrite_question(message, turns, services=services, archive=self.runs.store.archive)
        tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in rewriting.calls.values())
        await self.server.quota.add(self.owner, tokens)
        return rewriting


AccessDep = Annotated[Access, Depends(Access)]


async def _thread(thread: str, access: AccessDep) -> Thread:
    return await access.thread(thread)


ThreadDep = Annotated[Thread, Depends(_thread)]
"""The thread of the owner that a path names."""
