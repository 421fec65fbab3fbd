"""Generation of reasons and an answer from passages, as in Iter-RetGen and IRCoT."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from sleuth.agents.model_calls import Desk
from sleuth.agents.roles.reasoning import REASON, Reasoned, ReasonInput
from sleuth.graphs.core import Citation, Question, ask_or
from sleuth.graphs.evidence.citations import verified_citations
from sleuth.graphs.evidence.outcomes import as_steps, is_declarative
from sleuth.graphs.evidence.retrieval import as_sources
from sleuth.graphs.evidence.text_spans import strip_marks
from sleuth.tools.types import Passage


class Generation(TypedDict):
    """An answer, empty where there is none, with its reasons and citations."""

    answer: str
    reason: str
    citations: list[Citation]


async def generate(asking: Desk, state: Question, shown: Sequence[Passage], loss: str) -> Generation:
    """Generate an answer from passages and inherited notes; `loss` is warned of if the reply cannot be parsed."""
    given = ReasonInput(question=state.question, sources=as_sources(shown), known=as_steps(state.notes.values()))
    said = await ask_or(asking, REASON, given, Reasoned(answer=""), loss)
    text = strip_marks(said.answer) if is_declarative(strip_marks(said.answer)) else ""
    return Generation(
        answer=text, reason=said.reason, citations=verified_citations(asking, text, said.citations, shown)
    )
