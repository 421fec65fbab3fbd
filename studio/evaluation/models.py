"""Services for the runs of an evaluation: a model server, or a simulated model for each question, and the budget."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.agents.role import NAMES
from sleuth.graphs.core.context import Budget, Services
from sleuth.studio.client.sleuth import NamedModel, open_client, open_services
from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.gold import PASSAGES, KnownGold, OracleRetriever, gold_passages
from sleuth.studio.simulation import Gold, SimulatedModel, Simulation
from sleuth.tools.collection import Collection
from sleuth.tools.errors import RunError
from sleuth.tools.settings import Settings
from sleuth.tools.storage.triples import MemoryTriples

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
        spent = {"calls": self.calls, "tokens": self.tokens, "seconds": time.monotonic() - self.began}
        for name, amount in spent.items():
            limit = getattr(self.limits, f"max_{name}")
            if limit is not None and amount >= limit:
                raise BudgetSpent(f"the {limit:,} {name} of --max-{name} are spent")
        self.calls += 1


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationModel:
    """Model that checks the evaluation's budget before each call; `oracle` plays some roles from the gold instead."""

    model: Model
    allowance: EvaluationBudget
    oracle: Model | None = None
    roles: Sequence[str] = ()

    @property
    def context_window(self) -> int:
        """That of the model."""
        return self.model.context_window

    async def call(self, request: Request) -> Reply:
        """Return one reply of the model that plays the role; raise BudgetSpent instead of a call too many."""
        if self.oracle and request.role in self.roles:
            return await self.oracle.call(request)
        self.allowance.require()
        reply = await self.model.call(request)
        self.allowance.tokens += reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"]
        return reply

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the model's token count."""
        return await self.model.count_tokens(messages, role=role)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationModels:
    """Services for each run, and the names of the models by role ("default": all that have none of their own)."""

    services_for: ServicesFor
    judge: Model | None
    names: dict[str, str]


@asynccontextmanager
async def open_models(
    settings: Settings,
    collection: Collection,
    known: KnownGold,
    allowance: EvaluationBudget,
    *,
    simulation: Simulation | None,
    gold: Sequence[str],
) -> AsyncIterator[EvaluationModels]:
    """Open the model server of the settings, or with a simulation a simulated model for each run.

    A simulated model has the gold of its run's question only. Every run has its own triples: with a shared cache the
    cost of a question would depend on earlier ones. For the same reason the only knowledge graph is the one in the
    settings.

    Raises:
        ModelError: the model server cannot be used.
    """
    async with AsyncExitStack() as opened:
        served: NamedModel | None = None
        if not simulation:
            served = await opened.enter_async_context(open_client(settings))
        named = served or SimulatedModel(Gold(id="", question="", answer=""), simulation or Simulation(rates={}))
        opening = open_services(settings, named, collection, triples=MemoryTriples())
        shared = await opened.enter_async_context(opening)
        judge = EvaluationModel(model=served, allowance=allowance) if served else None

        async def services_for(question: GoldQuestion) -> Services:
            model = judge
            if not model or set(gold) - {PASSAGES}:
                playing = SimulatedModel(await known.gold(question), simulation or Simulation(rates={}))
                model = EvaluationModel(model=served or playing, allowance=allowance, oracle=playing, roles=gold)
            services = replace(shared, model=model, triples=MemoryTriples())
            if PASSAGES in gold:
                passages = await gold_passages(collection, question)
                services = replace(services, retriever=OracleRetriever(retriever=services.retriever, gold=passages))
            return services

        default = named.name_of("default")
        own = {role: name for role in NAMES if (name := named.name_of(role)) != default}
        yield EvaluationModels(judge=judge, services_for=services_for, names={"default": default, **own})
