"""The collection and runs of each owner of one process. Owners share the model server and the embedder."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import Any, TypeVar

from sleuth.agents.model import NamedModel
from sleuth.graphs.core.context import DEFAULT_METHOD
from sleuth.graphs.core.method import MODELLESS_METHOD
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.persistence.threads import OnQueued, Threads
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.services import MissingModel, open_services
from sleuth.tools.collection import Collection
from sleuth.tools.errors import ModelTimeout, ModelUnavailable
from sleuth.tools.ingestion.ingestion import make_passage_embedder
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings

T = TypeVar("T")

ModelOpener = Callable[[Settings], AbstractAsyncContextManager[NamedModel]]


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
        self._resources = resources
        self._opened: dict[str, Any] = {"embedder": embedder} if embedder else {}
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def read_only_runs(self, owner: str, on_queued: OnQueued = lambda *_: None) -> RunService:
        """Return an owner's runs for reading, and queueing as in `Threads`: neither needs a model server."""
        threads = Threads(self.store.engine, owner, self.store.locks, on_queued)
        return RunService(replace(self.store, threads=threads))

    async def runs(self, owner: str, *, needs_model: bool = True, model: str = "") -> RunService:
        """Return an owner's runs, with the services that are needed to run them.

        Args:
            owner: whose runs.
            needs_model: whether a run needs a model.
            model: the name of a model that is used instead of the default.

        Raises:
            ModelError: the model server cannot be used, and the run `needs_model`.
            StoreError: the collection cannot be used.
        """
        collection, client = await self.collection(owner), await self._model_or_missing(model, needs_model=needs_model)
        name = f"services of {owner} with {'no model' if isinstance(client, MissingModel) else model or 'the default'}"
        opening = open_services(self.settings_of(owner), client, collection)
        services = await self._once(name, lambda: self._resources.enter_async_context(opening))
        return RunService(self.read_only_runs(owner).store, services)

    async def default_method(self) -> str:
        """Return the method of a request that names none."""
        model = await self._model_or_missing("", needs_model=False)
        return MODELLESS_METHOD if isinstance(model, MissingModel) else DEFAULT_METHOD

    async def _model_or_missing(self, name: str, *, needs_model: bool) -> NamedModel:
        try:
            return await self.model(name)
        except (ModelUnavailable, ModelTimeout) as error:
            if needs_model:
                raise
            return MissingModel(reason=error)

    async def collection(self, owner: str) -> Collection:
        """Return an owner's collection."""

        async def open_collection() -> Collection:
            embedder = await self._once("embedder", lambda: asyncio.to_thread(make_passage_embedder, self.settings))
            opened = await Collection.open(self.settings_of(owner), home=self.store.home, embedder=embedder)
            return await self._resources.enter_async_context(opened)

        return await self._once(f"collection of {owner}", open_collection)

    async def model(self, name: str = "") -> NamedModel:
        """Return the client of a model, by default of the server's; connect again until the model server answers."""
        settings = self.settings.model_copy(update={"model": name}) if name else self.settings
        return await self._once(
            f"model {name}", lambda: self._resources.enter_async_context(self._open_model(settings))
        )

    def settings_of(self, owner: str) -> Settings:
        """Return the settings of an owner; by default originals are kept and citations required."""
        on = {name: getattr(self.settings, name) is not False for name in ("keep_originals", "require_citations")}
        return self.settings.model_copy(update={"owner": owner, **on})

    async def _once(self, name: str, opening: Callable[[], Awaitable[T]]) -> T:
        async with self._opening[name]:
            if name not in self._opened:
                self._opened[name] = await opening()
        resource: T = self._opened[name]
        return resource
