"""Services for the runs of an evaluation: a model server, or a simulated model for each question."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from sleuth.agents.model import Model
from sleuth.agents.role import NAMES
from sleuth.graphs.runs import Services
from sleuth.studio.client import build_services, gateway_class
from sleuth.studio.evaluation.data import (
    GoldQuestion,
    GoldTexts,
    OracleModel,
    OracleParts,
    OracleRetriever,
    QuestionPages,
    cache_embeddings,
    gold_passages,
    page_passages,
)
from sleuth.studio.evaluation.running.harness import ServicesFor
from sleuth.studio.evaluation.scoring import EvaluationBudget, MeteredModel
from sleuth.studio.simulation import Gold, SimulatedModel, Simulation, gold_of, gold_on_pages
from sleuth.studio.simulation.model import NAME as SIMULATED
from sleuth.tools.collection import Collection
from sleuth.tools.settings import Settings
from sleuth.tools.storage import MemoryTriples


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationModels:
    """Services for each run, and the names of the models by role ("default": all that have none of their own)."""

    services_for: ServicesFor
    judge: Model | None
    names: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownGold:
    """Gold known in advance: passages of the collection, or of a question's pages."""

    texts: GoldTexts
    pages: QuestionPages

    async def gold(self, question: GoldQuestion) -> Gold:
        """Return the gold from which a simulated model answers."""
        if not question.pages:
            return gold_of(question.row, self.texts.of(question))
        return await asyncio.to_thread(gold_on_pages, question.row, page_passages(await self.pages.of(question)))


@asynccontextmanager
async def open_served_models(
    settings: Settings, library: Collection, known: KnownGold, parts: OracleParts, allowance: EvaluationBudget
) -> AsyncIterator[EvaluationModels]:
    """Open the model server of the settings, except for the oracle parts; raise ModelError if it cannot be used.

    Every run has its own triples: with a shared cache the cost of a question would depend on earlier ones. For the same
    reason the only knowledge graph is the one in the settings.
    """
    gateway = await asyncio.to_thread(gateway_class)
    async with (
        gateway.open(settings) as model,
        build_services(settings, library, model_of=model.name_of) as make,
    ):
        metered, embedder = MeteredModel(model, allowance), cache_embeddings(library.embedder)

        async def services_for(question: GoldQuestion) -> Services:
            services = make(model=metered, triples=MemoryTriples(), embedder=embedder)
            if parts.roles:
                gold = SimulatedModel(await known.gold(question), Simulation(rates={}))
                services = replace(services, model=OracleModel(model=metered, simulated=gold, roles=parts.roles))
            if parts.passages:
                passages = await gold_passages(library, question)
                services = replace(services, retriever=OracleRetriever(retriever=services.retriever, gold=passages))
            return services

        names = {role: model.name_of(role) for role in ("default", *NAMES)}
        own = {role: name for role, name in names.items() if name != names["default"]}
        yield EvaluationModels(judge=metered, services_for=services_for, names={"default": names["default"], **own})


@asynccontextmanager
async def open_simulated_models(
    settings: Settings, library: Collection, known: KnownGold, simulation: Simulation, allowance: EvaluationBudget
) -> AsyncIterator[EvaluationModels]:
    """Open a simulated model for each run, which has the gold of that run's question only."""
    async with build_services(settings, library, model_of=lambda _: SIMULATED) as make:
        embedder = cache_embeddings(library.embedder)

        async def services_for(question: GoldQuestion) -> Services:
            simulating = SimulatedModel(await known.gold(question), simulation)
            return make(model=MeteredModel(simulating, allowance), triples=MemoryTriples(), embedder=embedder)

        yield EvaluationModels(judge=None, services_for=services_for, names={"default": SIMULATED})
