"""What the MCP tools work on: the documents and runs of one owner. The home is opened once."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from uuid import uuid4

from sleuth.graphs.chat.sending import as_chat, send
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Event
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.persistence.store import open_store, translated_failures
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.execution import now
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.services import open_client
from sleuth.studio.tenants import ModelOpener, Tenants
from sleuth.tools.collection import Collection
from sleuth.tools.errors import SleuthError, ThreadBusy
from sleuth.tools.home import Home
from sleuth.tools.settings import Settings

Events = AsyncGenerator[Event]

BUDGET_KEPT = "Run {} is running and keeps its budget. To wait for it, call `resume` without a budget."


class Backend(ABC):
    """The operations of the tools, for one owner. The home is locked only while a tool uses it."""

    def __init__(self, tenants: Tenants, owner: str, *, wait: float = 0.0) -> None:
        """Wait at most some seconds for another process that uses the home."""
        self.tenants, self.owner, self.lock, self.wait = tenants, owner, tenants.store.home.lock, wait

    @property
    def runs(self) -> RunService:
        """The owner's runs, for reading."""
        return self.tenants.read_only_runs(self.owner)

    @asynccontextmanager
    async def collection(self) -> AsyncIterator[Collection]:
        """Open the owner's documents."""
        async with self.lock.hold("search", wait=self.wait):
            yield await self.tenants.collection(self.owner)

    @abstractmethod
    async def ask(self, request: RunRequest) -> Events:
        """Store and begin a run; return its steps, then its answer."""

    @abstractmethod
    async def resume(self, id: str, budget: Budget | None) -> Events:
        """Resume or follow a run of the owner; raise SleuthError, also for a budget of a run in progress."""

    def name_of(self, id: str) -> str:
        """Return the name by which the owner knows a thread."""
        return id

    async def id_of(self, name: str) -> str:
        """Return the id of the thread that the owner knows by a name; raise UnknownName."""
        return (await self.runs.store.threads.get(name)).id

    async def new_id(self, name: str | None) -> str:
        """Return the id of a new run, which may have a name."""
        return name or uuid4().hex[:12]


class _Run:
    """A run in the background."""

    def __init__(self, events: Events) -> None:
        self.task = asyncio.create_task(self._collect(events))
        self._followers: list[asyncio.Queue[Event | None]] = []

    def follow(self) -> Events:
        """Return the further events; closing them does not stop the run. They raise the error that stopped the run."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._followers.append(queue)
        self.task.add_done_callback(lambda _: queue.put_nowait(None))
        return self._read(queue)

    async def _read(self, queue: asyncio.Queue[Event | None]) -> Events:
        while (event := await queue.get()) is not None:
            yield event
        await self.task

    async def _collect(self, events: Events) -> None:
        async with aclosing(events) as stream:
            async for event in stream:
                for queue in self._followers:
                    queue.put_nowait(event)


class LocalBackend(Backend):
    """Backend of `sleuth mcp`: a run continues until this process ends, also if its client has given up."""

    def __init__(self, tenants: Tenants) -> None:
        """Use `open_local_backend`."""
        settings = tenants.settings
        super().__init__(tenants, settings.owner, wait=settings.wait)
        self._running: dict[str, _Run] = {}

    async def ask(self, request: RunRequest) -> Events:
        """Store and begin a run; return its events. The home is not locked while the model server is awaited."""
        default = request.default_method if request.method not in (None, CHAT) else await self.tenants.default_method()
        async with self.collection() as collection:
            await collection.require_documents(request.where)
        with translated_failures(self.tenants.store.engine):
            request = request.resolved(default_method=default, profile=self.tenants.settings.profile)
            id = await send(self.runs, as_chat(request))
        return self._begin(id, None).follow()

    async def resume(self, id: str, budget: Budget | None) -> Events:
        """Resume a run, or follow one that this process is running."""
        if budget and id in self._running:
            raise ThreadBusy(BUDGET_KEPT.format(id))
        return (self._running.get(id) or self._begin(id, budget)).follow()

    async def aclose(self) -> None:
        """Interrupt all runs."""
        tasks = [run.task for run in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, id: str, budget: Budget | None) -> _Run:
        run = self._running[id] = _Run(self._events(id, budget))
        run.task.add_done_callback(lambda _: self._running.pop(id, None))
        return run

    async def _events(self, id: str, budget: Budget | None) -> Events:
        with translated_failures(self.tenants.store.engine):
            async with self.lock.hold("search", wait=self.wait), self.runs.hold(id) as held:
                thread = held.thread
                needs_model = runnable(thread.method).needs_model and thread.method != CHAT and thread.state != "done"
                try:
                    runs = await self.tenants.runs(self.owner, needs_model=needs_model, model=thread.options.model)
                except SleuthError as error:
                    await self.runs.store.threads.set_state(id, "failed", at=now(), problem=str(error))
                    raise
                async with aclosing(runs.run_held(id, budget=budget)) as events:
                    async for event in events:
                        yield event


@asynccontextmanager
async def open_local_backend(
    settings: Settings, *, open_model: ModelOpener = open_client
) -> AsyncIterator[LocalBackend]:
    """Open the home of the settings for the duration of the block; raise StoreError if it cannot be used."""
    async with (
        open_store(settings, Home(settings, "sleuth mcp")) as store,
        AsyncExitStack() as resources,
        aclosing(LocalBackend(Tenants(settings, store, open_model, None, resources))) as backend,
    ):
        yield backend
