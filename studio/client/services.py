"""The model client and the services of runs; without a usable model server, a model that raises the reason."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from sleuth.agents.model import DEMO_MODEL, Message, NamedModel, Reply, Request
from sleuth.graphs.core.context import Services
from sleuth.graphs.core.thresholds import fitted_thresholds
from sleuth.graphs.core.tracing import backend
from sleuth.graphs.core.triples import MemoryTriples, TripleStore
from sleuth.graphs.evidence.reading_model import with_reading_roles
from sleuth.graphs.registry import METHODS
from sleuth.tools.collection import Collection
from sleuth.tools.errors import MissingPart, SleuthError, needs_part
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.settings import Settings

_PACKAGED = Path(__file__).parents[1] / "model_server"
"""The folder with one folder for each packaged model, which may have fitted thresholds."""


@dataclass(frozen=True, kw_only=True)
class MissingModel:
    """The model of a `Sleuth` that was opened without a usable model server: every call raises the `reason`."""

    reason: SleuthError
    context_window: int = 0

    def name_of(self, role: str) -> str:
        """Return an empty name."""
        return ""

    async def call(self, request: Request) -> Reply:
        """Raise the reason."""
        raise self.reason

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Raise the reason."""
        raise self.reason


@asynccontextmanager
async def open_client(
    settings: Settings, model: BaseChatModel | Mapping[str, BaseChatModel] | None = None
) -> AsyncIterator[NamedModel]:
    """Open the model client. Without a LangChain model, LLMClient is imported now: other commands start without it.

    Raises:
        ModelError: no model server answers in time.
    """
    if model is None:
        client = await asyncio.to_thread(import_module, "sleuth.agents.llm.client")
        async with client.LLMClient.open(settings) as opened:
            yield opened
        return
    with needs_part("langchain", "A LangChain model"):
        from sleuth.agents.llm.chat_models import ChatModels

    models = model if isinstance(model, Mapping) else {"default": model}
    yield ChatModels(models, concurrency=settings.concurrency, seconds=settings.timeout)


@asynccontextmanager
async def open_client_or_missing(
    settings: Settings, model: BaseChatModel | Mapping[str, BaseChatModel] | None = None
) -> AsyncIterator[NamedModel]:
    """Open the model client, or a `MissingModel` if the model server cannot be used: a search needs none."""
    async with AsyncExitStack() as stack:
        client: NamedModel
        try:
            client = await stack.enter_async_context(open_client(settings, model))
        except SleuthError as error:
            if model is not None:
                raise
            client = MissingModel(reason=error)
        yield client


@asynccontextmanager
async def open_services(
    settings: Settings, model: NamedModel, collection: Collection, *, triples: "TripleStore | None" = None
) -> AsyncIterator[Services]:
    """Open the services of runs with an open model client and collection.

    Args:
        settings: the settings of the home.
        model: the model client.
        collection: the open collection.
        triples: the triples that runs share, by default those of the collection, which are also the knowledge graph if
            the settings name none.

    Raises:
        StoreError: a fitted threshold or the knowledge graph's file cannot be read.
        MissingExtra: SLEUTH_TRACING is `otel`, and the extra `otel` is not installed.
    """
    if settings.tracing == "otel":
        await asyncio.to_thread(lambda: backend(settings.tracing).open_tracer())
    checker = await asyncio.to_thread(EvidenceChecker.of_settings, settings)
    stored = None
    if triples is None:
        with suppress(MissingPart):  # without the part `triples` each process has its own
            stored = collection.triples(model=model.name_of("extractor"))
    async with AsyncExitStack() as stack:
        graph = None
        if "hybrid-rag" in METHODS and (settings.knowledge_graph or (stored and await stored.any())):
            from sleuth.graphs.methods.hybrid_rag.knowledge_graph.backends import open_graph

            graph = await stack.enter_async_context(open_graph(settings.knowledge_graph, stored, proxy=settings.proxy))
        yield Services(
            model=with_reading_roles(model, checker, settings.models),
            retriever=collection,
            embedder=collection.embedder,
            triples=triples or stored or MemoryTriples(),
            graph=graph,
            tracing=settings.tracing,
            trace_texts=settings.trace_texts,
            require_citations=bool(settings.require_citations),
            demo=model.name_of("default") == DEMO_MODEL,
            checker=checker,
            home=settings.home,
            thresholds=await asyncio.to_thread(
                lambda: fitted_thresholds([settings.home, *_PACKAGED.glob("*/")], model.name_of)
            ),
        )
