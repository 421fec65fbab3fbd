"""What runs of an evaluation are made with: a model server, or a simulated model of each question's own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from sleuth.agents.model import Model
from sleuth.agents.role import NAMES
from sleuth.agents.simulation import SimulatedModel, Simulation, gold_of
from sleuth.graphs.runs import Services
from sleuth.graphs.thresholds import fitted
from sleuth.studio.client import gateway_class
from sleuth.studio.evaluation.allowance import Allowance, Metered
from sleuth.studio.evaluation.gold import GoldTexts
from sleuth.studio.evaluation.harness import ServicesFor
from sleuth.studio.evaluation.questions import GoldQuestion
from sleuth.tools.attributes.svm import fitting
from sleuth.tools.knowledge_graph.place import graph_at
from sleuth.tools.library import Library
from sleuth.tools.settings import Settings
from sleuth.tools.triples import MemoryTriples


@dataclass(frozen=True, kw_only=True, slots=True)
class Models:
    """Services for each run, and the names of the models by role ("default": all that have none of their own)."""

    services_for: ServicesFor
    judge: Model | None
    names: dict[str, str]


@asynccontextmanager
async def served(settings: Settings, library: Library, allowance: Allowance) -> AsyncIterator[Models]:
    """The model server of the settings; raises ModelError where it cannot be used.

    Every run has triples of its own: with a shared cache a question's cost would depend on those asked before. For the
    same reason there is no knowledge graph but the one that the settings name.
    """
    gateway = await asyncio.to_thread(gateway_class)
    async with gateway.open(settings) as model, graph_at(settings.knowledge_graph) as graph:
        services = Services(
            model=Metered(model, allowance),
            retriever=library,
            embedder=library.embedder,
            graph=graph,
            predictor=await asyncio.to_thread(fitting, settings.home, library.embedder),
            threshold=await asyncio.to_thread(fitted, settings.home, model.name_of("verifier")),
        )
        names = {role: model.name_of(role) for role in ("default", *NAMES)}
        own = {role: name for role, name in names.items() if name != names["default"]}
        yield Models(
            judge=services.model,
            services_for=lambda question: replace(services, triples=MemoryTriples()),
            names={"default": names["default"], **own},
        )


def simulated(library: Library, texts: GoldTexts, simulation: Simulation, allowance: Allowance) -> Models:
    """A simulated model for each run, which knows that run's question alone."""

    def services_for(question: GoldQuestion) -> Services:
        gold = gold_of(question.row, texts.of(question))
        model = Metered(SimulatedModel(gold, simulation), allowance)
        return Services(model=model, retriever=library, embedder=library.embedder, triples=MemoryTriples())

    return Models(judge=None, services_for=services_for, names={"default": "simulated"})
