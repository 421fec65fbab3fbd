"""Who shows how it is done: at each call of a run what should have been said, while the run goes on with what errs.

So the examples cover what a model meets when it, or another role, has gone wrong before, and every reply in them is
right for what was shown (the idea of DAgger: Ross, Gordon and Bagnell, 2011).
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

from sleuth.agents.model import Message, Reply, Request
from sleuth.agents.simulation import Gold, SimulatedModel, Simulation
from sleuth.tools.documents import Hit
from sleuth.tools.retriever import Query, Retriever

FAULTLESS = Simulation(rates={}, yes_odds=6.0, yes_spread=0.0, rephrase=0.0)
"""Errs nowhere, and is sure of every yes and no."""

_UNDECIDED = (0.1, 0.9)


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One call: what was sent, and what should come back; `question` is the id of what the run was about."""

    question: str
    role: str
    prompt: str
    messages: tuple[Message, ...]
    reply: str


class Teacher:
    """The model of one question's run; `student` are the errors with which the run goes on."""

    def __init__(self, gold: Gold, student: Simulation) -> None:
        self.examples: list[Example] = []
        self._faultless = SimulatedModel(gold, FAULTLESS)
        self._student = SimulatedModel(gold, student)

    @property
    def context_window(self) -> int:
        """The student's."""
        return self._student.context_window

    async def call(self, request: Request) -> Reply:
        """The student's reply; the right one becomes an example, unless nobody can tell which it is."""
        right = await self._faultless.call(request)
        first = right["logprobs"][0]["top"] if right["logprobs"] else {}
        if "Yes" not in first or not _UNDECIDED[0] < math.exp(first["Yes"]) < _UNDECIDED[1]:
            self.examples.append(
                Example(
                    question=self._student.gold.id,
                    role=request.role,
                    prompt=request.prompt,
                    messages=request.messages,
                    reply=right["text"],
                )
            )
        return await self._student.call(request)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """As the simulation counts them."""
        return await self._student.count_tokens(messages, role=role)


@dataclass(frozen=True)
class Withholding:
    """A retriever that never finds certain passages: what a question needs may not be in a collection."""

    retriever: Retriever
    withheld: Collection[str]

    async def search(self, query: Query) -> list[Hit]:
        """The best of the rest."""
        wider = replace(query, k=query.k + len(self.withheld))
        found = await self.retriever.search(wider)
        return [hit for hit in found if hit.passage.id not in self.withheld][: query.k]
