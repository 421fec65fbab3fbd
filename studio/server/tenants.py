"""The collection and runs of each owner on one server. Owners share the model server and the embedder."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace

from sleuth.graphs.persistence import Store, Threads
from sleuth.graphs.runs import RunService, Services
from sleuth.studio.client import NamedModel, open_services
from sleuth.tools.collection import Collection, make_passage_embedder
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings

ModelOpener = Callable[[Settings], AbstractAsyncContextManager[NamedModel]]


@dataclass(kw_only=True)
class _Tenant:
    """The open resources of one owner."""

    settings: Settings
    store: Store
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    collection: Collection | None = None
    services: Services | None = None


class Tenants:
    """Resources of all owners, opened at their first use and kept open."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        open_model: ModelOpener,
        embedder: Embedder | None,
        resources: AsyncExitStack,
    ) -> None:
        """Close what is opened with `resources`."""
        self.settings = settings
        self.store = store
        self._open_model = open_model
        self._embedder = embedder
        self._tenants: dict[str, _Tenant] = {}
        self._model: NamedModel | None = None
        self._opening = asyncio.Lock()
        self._resources = resources

    async def read_only_runs(self, owner: str) -> RunService:
        """Return an owner's runs for reading: they need no model server."""
        return RunService((await self._of(owner)).store)

    async def runs(self, owner: str) -> RunService:
        """Return an owner's runs, with the services that running them takes.

        Raises:
            ModelError: the model server cannot be used.
            StoreError: the collection cannot be used.
        """
        tenant, collection, model = await self._of(owner), await self.collection(owner), await self.model()
        async with tenant.opening:
            if tenant.services is None:
                services = open_services(tenant.settings, model, collection)
                tenant.services = await self._resources.enter_async_context(services)
        return RunService(tenant.store, tenant.services)

    async def collection(self, owner: str) -> Collection:
        """Return an owner's collection."""
        tenant = await self._of(owner)
        async with tenant.opening:
            if tenant.collection is None:
                opened = await Collection.open(tenant.settings, embedder=await self._shared_embedder())
                tenant.collection = await self._resources.enter_async_context(opened)
        return tenant.collection

    async def model(self) -> NamedModel:
        """Return the model client; connect again at every call until the model server answers."""
        async with self._opening:
            if self._model is None:
                self._model = await self._resources.enter_async_context(self._open_model(self.settings))
        return self._model

    def settings_of(self, owner: str) -> Settings:
        """Return the settings of an owner; originals are kept by default."""
        keep = self.settings.keep_originals is not False
        return self.settings.model_copy(update={"owner": owner, "keep_originals": keep})

    async def _of(self, owner: str) -> _Tenant:
        if owner not in self._tenants:
            threads = Threads(self.store.engine, owner, self.store.locks)
            made = _Tenant(settings=self.settings_of(owner), store=replace(self.store, threads=threads))
            self._tenants.setdefault(owner, made)
        return self._tenants[owner]

    async def _shared_embedder(self) -> Embedder:
        async with self._opening:
            if self._embedder is None:
                self._embedder = await asyncio.to_thread(make_passage_embedder, self.settings)
        return self._embedder
