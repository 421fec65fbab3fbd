"""Players of an evaluation's runs from the gold: of all roles, or of some parts next to a real model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sleuth.agents.model import Message, Model, NamedModel, Reply, Request
from sleuth.graphs.core.context import Services
from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.gold import KnownGold
from sleuth.studio.evaluation.models import EvaluationModel
from sleuth.tools.errors import UnknownName
from sleuth.tools.search import DocumentReader, Query, Retriever
from sleuth.tools.types import Hit, Passage
from training.simulation.gold import Gold, gold_of, gold_on_pages
from training.simulation.model import SimulatedModel
from training.simulation.parameters import ROLES, Simulation

PASSAGES = "passages"
COMMAND = "python -m training.simulation"


class SimulatedPlayers:
    """A simulated model plays every role; it has the gold of one question at a time."""

    command = COMMAND
    title = "simulation"
    notice = "Simulation: no language model answered. The replies of the roles are made from the gold answers."

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.model: NamedModel | None = SimulatedModel(Gold(id="", question="", answer=""), simulation)

    def record(self) -> dict[str, Any]:
        """Return the parameters of the simulation."""
        return {"simulation": self._simulation.model_dump(mode="json")}

    async def services(self, question: GoldQuestion, services: Services, gold: KnownGold) -> Services:
        """Return services whose model plays the roles of this question."""
        assert isinstance(services.model, EvaluationModel)
        playing = SimulatedModel(await gold_for(question, gold), self._simulation)
        return replace(services, model=replace(services.model, model=playing))


class OraclePlayers:
    """Some roles are played from the gold, without error; with "passages", every search finds the gold passages."""

    command = COMMAND
    title = "partly gold"
    model: NamedModel | None = None

    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = parts
        self.notice = (
            f"Partly gold: {', '.join(parts)}. These are taken from the gold, without error; the rest is the model's."
        )

    def record(self) -> dict[str, Any]:
        """Return the parts that are taken from the gold."""
        return {"gold": list(self._parts)}

    async def services(self, question: GoldQuestion, services: Services, gold: KnownGold) -> Services:
        """Return services whose model and search take the parts from the gold of this question."""
        if roles := [part for part in self._parts if part != PASSAGES]:
            playing = SimulatedModel(await gold_for(question, gold), Simulation(rates={}))
            services = replace(services, model=OracleModel(model=services.model, oracle=playing, roles=roles))
        if PASSAGES in self._parts:
            passages = await gold_passages(question, gold)
            services = replace(services, retriever=OracleRetriever(retriever=services.retriever, gold=passages))
        return services


async def gold_for(question: GoldQuestion, gold: KnownGold) -> Gold:
    """Return the gold from which a simulated model answers a question."""
    if not question.pages:
        return gold_of(question.row, await gold.texts(question))
    passages = {
        page.id: (page.name, "\n".join([page.text, *(table.markdown for table in page.tables)]))
        for page in await gold.pages(question)
    }
    return await asyncio.to_thread(gold_on_pages, question.row, passages)


async def gold_passages(question: GoldQuestion, gold: KnownGold) -> list[Passage]:
    """Return the passages that a question names; of a document that it names, all."""
    known, documents = await gold.known(question)
    found = []
    for id in question.gold:
        if id in known:
            found.append(known[id])
        elif id in documents:
            found += await gold.collection.passages_of(id)
    return found


def oracle_parts(names: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a run that are taken from the gold: roles in order, then "passages".

    Raises:
        UnknownName: a name is neither a role nor "passages".
    """
    for name in names:
        if name not in (PASSAGES, *ROLES):
            raise UnknownName("part", name, [PASSAGES, *ROLES], f"There are: {PASSAGES}, {', '.join(ROLES)}.")
    return tuple(sorted(set(names), key=lambda name: (name == PASSAGES, name)))


@dataclass(frozen=True, kw_only=True, slots=True)
class OracleModel:
    """A model of which an oracle plays some roles."""

    model: Model
    oracle: Model
    roles: Sequence[str]

    @property
    def context_window(self) -> int:
        """That of the model."""
        return self.model.context_window

    async def call(self, request: Request) -> Reply:
        """Return the reply of the model that plays the role."""
        return await (self.oracle if request.role in self.roles else self.model).call(request)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the model's token count."""
        return await self.model.count_tokens(messages, role=role)


@dataclass(frozen=True, kw_only=True, slots=True)
class OracleRetriever:
    """Search that also finds the question's gold passages, in the places of the last that it found."""

    retriever: Retriever
    gold: Sequence[Passage]

    async def search(self, query: Query) -> list[Hit]:
        """Return as many passages as the search finds; missing gold passages replace the last ones."""
        found = await self.retriever.search(query)
        there, wanted = {hit.passage.id for hit in found}, {passage.id for passage in self.gold}
        missing = [passage for passage in self.gold if passage.id not in there][: query.k]
        spare = max(0, len(found) + len(missing) - query.k)
        others = [hit.passage.id for hit in found if hit.passage.id not in wanted]
        dropped = set(others[::-1][:spare])
        kept = [hit for hit in found if hit.passage.id not in dropped]
        lowest = kept[-1].score if kept else 0.0
        added = [Hit(passage=passage, score=lowest, rank=0) for passage in missing]
        return [replace(hit, rank=rank) for rank, hit in enumerate([*kept, *added][: query.k], start=1)]

    async def passages_of(self, document_id: str) -> list[Passage]:
        """Return the passages of a document, in order, as far as the search can read documents."""
        reader = self.retriever
        return await reader.passages_of(document_id) if isinstance(reader, DocumentReader) else []
