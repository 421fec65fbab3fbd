"""Reasons and an answer from passages, as Iter-RetGen and IRCoT generate them."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles.reasoning import REASON, Reasoned, ReasonInput
from sleuth.graphs.core import Citation, Question, ask_or
from sleuth.graphs.evidence.citations import cited
from sleuth.graphs.evidence.outcomes import declarative, known_steps
from sleuth.graphs.evidence.retrieval import sources
from sleuth.graphs.evidence.text_spans import clean
from sleuth.tools.types import Passage


class Generation(TypedDict):
    """An answer, empty where there is none, with its reasons and where it stands."""

    answer: str
    reason: str
    citations: list[Citation]


async def generate(asking: ModelCaller, state: Question, shown: Sequence[Passage], loss: str) -> Generation:
    """One generation from passages and from what was handed over; `loss` is said where its reply cannot be read."""
    given = ReasonInput(question=state.question, sources=sources(shown), known=known_steps(state.notes.values()))
    said = await ask_or(asking, REASON, given, Reasoned(answer=""), loss)
    text = clean(said.answer) if declarative(clean(said.answer)) else ""
    return Generation(answer=text, reason=said.reason, citations=cited(asking, text, said.citations, shown))
