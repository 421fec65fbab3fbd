"""What each owner has on one server: a collection and a list of runs. The model server is everyone's."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from sleuth.graphs.persistence import Store, Threads
from sleuth.graphs.runs import RunService, Services
from sleuth.studio.client import Named, open_services
from sleuth.tools.collection import Collection
from sleuth.tools.search.vectors import Embedder, make_embedder
from sleuth.tools.settings import Settings

OpenModel = Callable[[Settings], AbstractAsyncContextManager[Named]]


@dataclass(kw_only=True)
class _Tenant:
    """What is open for one owner."""

    settings: Settings
    store: Store
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    library: Collection | None = None
    services: Services | None = None


class Tenants:
    """Opens for an owner what is needed, when it is first needed, and keeps it open."""

    def __init__(self, settings: Settings, store: Store, open_model: OpenModel, embedder: Embedder | None) -> None:
        self.settings = settings
        self.store = store
        self._open_model = open_model
        self._embedder = embedder
        self._tenants: dict[str, _Tenant] = {}
        self._model: Named | None = None
        self._turn = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def reading(self, owner: str) -> RunService:
        """An owner's runs, to look at."""
        return RunService((await self._of(owner)).store)

    async def runs(self, owner: str) -> RunService:
        """An owner's runs, to run.

        Raises:
            ModelError: no model server answers.
            StoreError: the collection cannot be used.
        """
        tenant, library, model = await self._of(owner), await self.library(owner), await self.model()
        async with tenant.turn:
            if tenant.services is None:
                opening = open_services(tenant.settings, model, library)
                tenant.services = await self._stack.enter_async_context(opening)
        return RunService(tenant.store, tenant.services)

    async def library(self, owner: str) -> Collection:
        """An owner's collection."""
        tenant = await self._of(owner)
        async with tenant.turn:
            if tenant.library is None:
                opened = await Collection.open(tenant.settings, embedder=await self._shared_embedder())
                tenant.library = await self._stack.enter_async_context(opened)
        return tenant.library

    async def model(self) -> Named:
        """The model server; asked for anew at every call until it answers."""
        async with self._turn:
            if self._model is None:
                self._model = await self._stack.enter_async_context(self._open_model(self.settings))
        return self._model

    def settings_of(self, owner: str) -> Settings:
        """The settings as an owner has them."""
        return self.settings.model_copy(update={"owner": owner})

    async def _of(self, owner: str) -> _Tenant:
        if owner not in self._tenants:
            threads = await asyncio.to_thread(Threads, self.store.engine, owner, self.store.locks)
            made = _Tenant(settings=self.settings_of(owner), store=replace(self.store, threads=threads))
            self._tenants.setdefault(owner, made)
        return self._tenants[owner]

    async def _shared_embedder(self) -> Embedder:
        """Loaded once for everybody."""
        async with self._turn:
            if self._embedder is None:
                self._embedder = await asyncio.to_thread(make_embedder, self.settings)
        return self._embedder
