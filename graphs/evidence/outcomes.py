"""Notes, answers and verdicts: how a run ends and what it cites."""

import re
from collections.abc import Iterable, Sequence

from typing_extensions import TypedDict

from sleuth.agents.formatting import Step
from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles.inputs import ReadInput, TrajectoryInput
from sleuth.agents.roles.reading import ANSWER, Final
from sleuth.agents.roles.reasoning import REASON, Reasoned
from sleuth.graphs.core import Citation, Note, Question, Status, Verdict, ask_or
from sleuth.graphs.evidence.citations import verified_citations
from sleuth.graphs.evidence.retrieval import as_sources
from sleuth.graphs.evidence.text_spans import strip_marks
from sleuth.tools.types import Passage


def make_note(question: str, finding: str, citations: list[Citation], remark: str = "") -> Note:
    """Return a finding as a note."""
    passages = list(dict.fromkeys(citation["passage"] for citation in citations))
    written = Note(question=question, finding=finding, passages=passages, citations=citations)
    return Note(**written, remark=remark) if remark else written


def as_steps(notes: Iterable[Note]) -> tuple[Step, ...]:
    """Return notes in the form that roles read."""
    return tuple(Step(question=note["question"], answer=note["finding"] or "not found") for note in notes)


def make_verdict(status: Status, text: str, notes: Iterable[Note]) -> Verdict:
    """Return a verdict with the citations of its notes; only an answer has any, also one after the budget ran out."""
    cites = text and status in ("answered", "out_of_budget")
    every = [citation for note in notes for citation in note.get("citations", [])] if cites else []
    places = [{**citation, "why": None} for citation in every]
    unique = [citation for at, citation in enumerate(every) if places[at] not in places[:at]]
    return Verdict(status=status, text=text, citations=unique)


async def answer_question(model: ModelCaller, question: str, notes: Sequence[Note]) -> Verdict:
    """Answer the question from notes; the verdict is "unknown" if they do not suffice."""
    given = TrajectoryInput(question=question, trajectory=as_steps(notes))
    final = await ask_or(model, ANSWER, given, Final(known=False), "The question stays open.")
    text = strip_marks(final.answer)
    return verdict_for(model, text, notes) if final.known and text else make_verdict("unknown", "", [])


def verdict_for(model: ModelCaller, text: str, notes: Iterable[Note]) -> Verdict:
    """Return the verdict of an answer with the citations of its notes, and warn if there are none."""
    verdict = make_verdict("answered", text, notes)
    if not verdict["citations"]:
        model.warn("no passage supports this answer word for word")
    return verdict


def finish(
    model: ModelCaller, state: Question, text: str, citations: list[Citation]
) -> tuple[dict[str, Note | None], Verdict]:
    """Return the note and verdict of an answer; the verdict is "unknown" if the text is empty."""
    if not text:
        return {}, make_verdict("unknown", "", [])
    found = make_note(state.question, text, citations)
    return {"answer": found}, verdict_for(model, text, [*state.notes.values(), found])


class Generation(TypedDict):
    """An answer, empty where there is none, with its reasons and citations."""

    answer: str
    reason: str
    citations: list[Citation]


async def generate(model: ModelCaller, state: Question, shown: Sequence[Passage], loss: str) -> Generation:
    """Generate an answer from passages and inherited notes; `loss` is warned of if the reply cannot be parsed."""
    given = ReadInput(question=state.question, sources=as_sources(shown), known=as_steps(state.notes.values()))
    said = await ask_or(model, REASON, given, Reasoned(answer=""), loss)
    text = strip_marks(said.answer) if is_declarative(strip_marks(said.answer)) else ""
    return Generation(answer=text, reason=said.reason, citations=verified_citations(model, text, said.citations, shown))


def is_declarative(answer: str) -> bool:
    """Return whether an answer states something: not empty, "unknown", a guess or a question."""
    said = answer.strip().rstrip(".!")
    return bool(said) and not any(pattern.fullmatch(said) for pattern in _NO_ANSWERS)


_NO_ANSWERS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"(?:(?:it|this|that|the answer) (?:is|remains) )?(?:unknown|unclear|unspecified|n/?a|undetermined)",
        r"not (?:known|given|stated|mentioned|specified|provided|found|available|clear|sure|applicable)\b.*",
        r"no (?:answer|information|evidence|mention|data)\b.*",
        r"(?:sorry|i am|i'm|(?:i|we) (?:do not|don't|cannot|can't|could not|couldn't))\b.*",
        r".*\b(?:cannot|can't|could not|couldn't) be (?:determined|answered|found|known|inferred)\b.*",
        r".*\b(?:is|was|are|were) not (?:mentioned|given|stated|specified|provided|known|found|clear)\b.*",
        r".*\b(?:is|are|remains?) (?:unknown|unclear|unspecified)",
        r"(?:insufficient|not enough)\b.*",
        r"(?:perhaps|maybe|possibly|probably|presumably|it depends|it (?:might|may|could) be)\b.*",
        r".*\?",
    )
)
"""Patterns of replies that give no answer, guess, or ask a question; each has to match the whole reply."""
