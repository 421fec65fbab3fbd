"""Oracle ablations: roles and search results taken from the gold, to measure what the other parts lose."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.studio.evaluation.data.questions import GoldQuestion
from sleuth.studio.simulation import SimulatedModel
from sleuth.studio.simulation.parameters import ROLES
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UnknownName
from sleuth.tools.search import Query, Retriever
from sleuth.tools.types import Hit, Passage

PASSAGES = "passages"


@dataclass(frozen=True, kw_only=True, slots=True)
class OracleParts:
    """Roles that are played from the gold without error, and whether every search finds a question's gold passages."""

    roles: frozenset[str] = frozenset()
    passages: bool = False

    @classmethod
    def parse(cls, names: Iterable[str]) -> Self:
        """Return the parts with these names: roles or "passages"; raise UnknownName for any other."""
        chosen = frozenset(names)
        for name in sorted(chosen - ROLES.keys() - {PASSAGES}):
            raise UnknownName("part", name, [PASSAGES, *ROLES], f"There are: {PASSAGES}, {', '.join(ROLES)}.")
        return cls(roles=chosen - {PASSAGES}, passages=PASSAGES in chosen)

    def names(self) -> list[str]:
        """Return the names as given on the command line."""
        return [*sorted(self.roles), *([PASSAGES] if self.passages else [])]


@dataclass(frozen=True, kw_only=True, slots=True)
class OracleModel:
    """A model some of whose roles are answered from the gold of the run's question."""

    model: Model
    simulated: SimulatedModel
    roles: frozenset[str]

    @property
    def context_window(self) -> int:
        """The real model's."""
        return self.model.context_window

    async def call(self, request: Request) -> Reply:
        """Return the reply of the model that answers this role; raise ModelError if the real model does."""
        return await (self.simulated if request.role in self.roles else self.model).call(request)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the real model's token count."""
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


async def gold_passages(library: Collection, question: GoldQuestion) -> list[Passage]:
    """Return those that the question names; of a document that it names, all."""
    known = {passage.id: passage for passage in await library.passages(question.gold)}
    documents = await library.known_ids([id for id in question.gold if id not in known])
    found = []
    for id in question.gold:
        if id in known:
            found.append(known[id])
        elif id in documents:
            found += await library.passages_of(id)
    return found
