"""What runs of an evaluation are made with: a model server, or a simulated model of each question's own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from sleuth.agents.model import Model
from sleuth.agents.role import NAMES
from sleuth.graphs.runs import Services
from sleuth.studio.client import build_services, gateway_class
from sleuth.studio.evaluation.data import (
    FindingGold,
    GoldQuestion,
    GoldTexts,
    PagesOf,
    PartlyGold,
    Parts,
    gold_passages,
    remembering,
    shown,
)
from sleuth.studio.evaluation.running.harness import ServicesFor
from sleuth.studio.evaluation.scoring import Allowance, Metered
from sleuth.studio.simulation import Gold, SimulatedModel, Simulation, gold_of, gold_on_pages
from sleuth.studio.simulation.model import NAME as SIMULATED
from sleuth.tools.collection import Library
from sleuth.tools.settings import Settings
from sleuth.tools.storage import MemoryTriples


@dataclass(frozen=True, kw_only=True, slots=True)
class Models:
    """Services for each run, and the names of the models by role ("default": all that have none of their own)."""

    services_for: ServicesFor
    judge: Model | None
    names: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What is known about questions beforehand: gold passages of the collection, or what their pages tell."""

    texts: GoldTexts
    pages: PagesOf

    async def gold(self, question: GoldQuestion) -> Gold:
        """What a simulated model answers from."""
        if not question.pages:
            return gold_of(question.row, self.texts.of(question))
        return await asyncio.to_thread(gold_on_pages, question.row, shown(await self.pages.of(question)))


@asynccontextmanager
async def served(
    settings: Settings, library: Library, known: Known, parts: Parts, allowance: Allowance
) -> AsyncIterator[Models]:
    """The model server of the settings, less the parts that are gold; raises ModelError where it cannot be used.

    Every run has triples of its own: with a shared cache a question's cost would depend on those asked before. For the
    same reason there is no knowledge graph but the one that the settings name.
    """
    gateway = await asyncio.to_thread(gateway_class)
    async with (
        gateway.open(settings) as model,
        build_services(settings, library, model_of=model.name_of) as make,
    ):
        metered, embedder = Metered(model, allowance), remembering(library.embedder)

        async def services_for(question: GoldQuestion) -> Services:
            services = make(model=metered, triples=MemoryTriples(), embedder=embedder)
            if parts.roles:
                gold = SimulatedModel(await known.gold(question), Simulation(rates={}))
                services = replace(services, model=PartlyGold(model=metered, simulated=gold, roles=parts.roles))
            if parts.passages:
                passages = await gold_passages(library, question)
                services = replace(services, retriever=FindingGold(retriever=services.retriever, gold=passages))
            return services

        names = {role: model.name_of(role) for role in ("default", *NAMES)}
        own = {role: name for role, name in names.items() if name != names["default"]}
        yield Models(judge=metered, services_for=services_for, names={"default": names["default"], **own})


@asynccontextmanager
async def simulated(
    settings: Settings, library: Library, known: Known, simulation: Simulation, allowance: Allowance
) -> AsyncIterator[Models]:
    """A simulated model for each run, which knows that run's question alone; all else as with a model server."""
    async with build_services(settings, library, model_of=lambda _: SIMULATED) as make:
        embedder = remembering(library.embedder)

        async def services_for(question: GoldQuestion) -> Services:
            simulating = SimulatedModel(await known.gold(question), simulation)
            return make(model=Metered(simulating, allowance), triples=MemoryTriples(), embedder=embedder)

        yield Models(judge=None, services_for=services_for, names={"default": SIMULATED})
