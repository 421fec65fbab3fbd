"""Services for the runs of an evaluation: a model server, or a simulated model for each question, and the budget."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.agents.role import NAMES
from sleuth.graphs.core.context import Budget
from sleuth.graphs.runs import Services
from sleuth.studio.client import build_services, client_class
from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.gold import KnownGold, OracleModel, OracleParts, OracleRetriever, gold_passages
from sleuth.studio.simulation import SimulatedModel, Simulation
from sleuth.studio.simulation.model import NAME as SIMULATED
from sleuth.tools.collection import Collection
from sleuth.tools.errors import RunError
from sleuth.tools.search.vectors import Embedder, Vectors
from sleuth.tools.settings import Settings
from sleuth.tools.storage import MemoryTriples

MAX_VECTORS = 50_000

ServicesFor = Callable[[GoldQuestion], Awaitable[Services]]
"""Factory of the services of one question's run."""


class BudgetSpent(RunError):
    """The evaluation's budget is spent; finished runs are kept, and a larger budget resumes."""


@dataclass(kw_only=True)
class EvaluationBudget:
    """The limits, and what is spent so far; seconds count from the start of this command."""

    limits: Budget
    calls: int = 0
    tokens: int = 0
    began: float = field(default_factory=time.monotonic)

    def require(self) -> None:
        """Count one more call; raise BudgetSpent where there is none left."""
        limits = self.limits
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            raise BudgetSpent(f"the {limits.max_calls:,} model calls of --max-calls are made")
        if limits.max_tokens is not None and self.tokens >= limits.max_tokens:
            raise BudgetSpent(f"the {limits.max_tokens:,} tokens of --max-tokens are spent")
        if limits.max_seconds is not None and time.monotonic() - self.began >= limits.max_seconds:
            raise BudgetSpent(f"the {limits.max_seconds:g} seconds of --max-seconds are over")
        self.calls += 1


class MeteredModel:
    """Model that checks the evaluation's budget before each call."""

    def __init__(self, model: Model, allowance: EvaluationBudget) -> None:
        self._model = model
        self._allowance = allowance

    @property
    def context_window(self) -> int:
        """That of the model."""
        return self._model.context_window

    async def call(self, request: Request) -> Reply:
        """Return one reply of the model; raise BudgetSpent instead of a call too many."""
        self._allowance.require()
        reply = await self._model.call(request)
        self._allowance.tokens += reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"]
        return reply

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the model's token count."""
        return await self._model.count_tokens(messages, role=role)


class CachedEmbedder:
    """Embedder that embeds a passage once: all systems search the same chunks of a question's pages."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}
        self._turn = threading.Lock()

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Return unit vectors, one for each text. Blocks."""
        with self._turn:
            if len(self._known) > MAX_VECTORS:
                self._known.clear()
            if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
                self._known |= dict(zip(new, self._embedder.embed_passages(new), strict=True))
            return np.stack([self._known[text] for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """Return the embedder's vector. Blocks."""
        return self._embedder.embed_query(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationModels:
    """Services for each run, and the names of the models by role ("default": all that have none of their own)."""

    services_for: ServicesFor
    judge: Model | None
    names: dict[str, str]


@asynccontextmanager
async def open_served_models(
    settings: Settings, collection: Collection, known: KnownGold, parts: OracleParts, allowance: EvaluationBudget
) -> AsyncIterator[EvaluationModels]:
    """Open the model server of the settings, except for the oracle parts; raise ModelError if it cannot be used.

    Every run has its own triples: with a shared cache the cost of a question would depend on earlier ones. For the same
    reason the only knowledge graph is the one in the settings.
    """
    client_type = await asyncio.to_thread(client_class)
    async with (
        client_type.open(settings) as model,
        build_services(settings, collection, model_of=model.name_of) as make,
    ):
        metered, embedder = MeteredModel(model, allowance), collection.embedder and CachedEmbedder(collection.embedder)

        async def services_for(question: GoldQuestion) -> Services:
            services = make(model=metered, triples=MemoryTriples(), embedder=embedder)
            if parts.roles:
                gold = SimulatedModel(await known.gold(question), Simulation(rates={}))
                services = replace(services, model=OracleModel(model=metered, simulated=gold, roles=parts.roles))
            if parts.passages:
                passages = await gold_passages(collection, question)
                services = replace(services, retriever=OracleRetriever(retriever=services.retriever, gold=passages))
            return services

        names = {role: model.name_of(role) for role in ("default", *NAMES)}
        own = {role: name for role, name in names.items() if name != names["default"]}
        yield EvaluationModels(judge=metered, services_for=services_for, names={"default": names["default"], **own})


@asynccontextmanager
async def open_simulated_models(
    settings: Settings, collection: Collection, known: KnownGold, simulation: Simulation, allowance: EvaluationBudget
) -> AsyncIterator[EvaluationModels]:
    """Open a simulated model for each run, which has the gold of that run's question only."""
    async with build_services(settings, collection, model_of=lambda _: SIMULATED) as make:
        embedder = collection.embedder and CachedEmbedder(collection.embedder)

        async def services_for(question: GoldQuestion) -> Services:
            simulating = SimulatedModel(await known.gold(question), simulation)
            return make(model=MeteredModel(simulating, allowance), triples=MemoryTriples(), embedder=embedder)

        yield EvaluationModels(judge=None, services_for=services_for, names={"default": SIMULATED})


def open_models(
    settings: Settings,
    collection: Collection,
    known: KnownGold,
    allowance: EvaluationBudget,
    *,
    simulation: Simulation | None,
    gold: OracleParts,
) -> AbstractAsyncContextManager[EvaluationModels]:
    """Return the simulated models if there is a simulation, else those of the model server; open them with `with`."""
    if simulation:
        return open_simulated_models(settings, collection, known, simulation, allowance)
    return open_served_models(settings, collection, known, gold, allowance)
