"""Reasons and an answer from passages, as Iter-RetGen and IRCoT generate them."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from sleuth.agents.desk import Desk
from sleuth.agents.reasoner import REASON, Reasoned, ReasonInput
from sleuth.graphs.answer import Citation
from sleuth.graphs.casebook import declarative
from sleuth.graphs.evidence import cited, clean, known_steps, sources
from sleuth.graphs.state import Question, ask_or
from sleuth.tools.documents import Passage


class Generation(TypedDict):
    """An answer, empty where there is none, with its reasons and where it stands."""

    answer: str
    reason: str
    citations: list[Citation]


async def generate(asking: Desk, state: Question, shown: Sequence[Passage], loss: str) -> Generation:
    """One generation from passages and from what was handed over; `loss` is said where its reply cannot be read."""
    given = ReasonInput(question=state.question, sources=sources(shown), known=known_steps(state.notes.values()))
    said = await ask_or(asking, REASON, given, Reasoned(answer=""), loss)
    text = clean(said.answer) if declarative(clean(said.answer)) else ""
    return Generation(answer=text, reason=said.reason, citations=cited(asking, text, said.citations, shown))
