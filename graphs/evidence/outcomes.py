"""Notes, answers and verdicts: how a run ends and what it cites."""

import re
from collections.abc import Iterable, Sequence

from sleuth.agents.formatting import Step
from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles.reading import ANSWER, AnswerInput, Final
from sleuth.graphs.core import Citation, Note, Question, Status, Verdict, ask_or
from sleuth.graphs.evidence.text_spans import clean


def note(question: str, finding: str, citations: list[Citation], remark: str = "") -> Note:
    """A finding and where it stands."""
    passages = list(dict.fromkeys(citation["passage"] for citation in citations))
    written = Note(question=question, finding=finding, passages=passages, citations=citations)
    return Note(**written, remark=remark) if remark else written


def known_steps(notes: Iterable[Note]) -> tuple[Step, ...]:
    """Notes as the roles see them."""
    return tuple(Step(question=note["question"], answer=note["finding"] or "not found") for note in notes)


def conclude(status: Status, text: str, notes: Iterable[Note]) -> Verdict:
    """The end of a run; only an answer, also one cut short by the budget, cites, and only what its notes stand on."""
    cites = text and status in ("answered", "out_of_budget")
    every = [citation for note in notes for citation in note.get("citations", [])] if cites else []
    places = [{**citation, "why": None} for citation in every]
    unique = [citation for at, citation in enumerate(every) if places[at] not in places[:at]]
    return Verdict(status=status, text=text, citations=unique)


async def final_answer(desk: ModelCaller, question: str, notes: Sequence[Note]) -> Verdict:
    """The question answered from what was found out; "unknown" where that does not tell."""
    given = AnswerInput(question=question, trajectory=known_steps(notes))
    final = await ask_or(desk, ANSWER, given, Final(known=False), "The question stays open.")
    text = clean(final.answer)
    return answered(desk, text, notes) if final.known and text else conclude("unknown", "", [])


def answered(desk: ModelCaller, text: str, notes: Iterable[Note]) -> Verdict:
    """An answer with the citations of its notes; that it has none is worth a warning."""
    verdict = conclude("answered", text, notes)
    if not verdict["citations"]:
        desk.warn("nothing that was read supports this answer word for word")
    return verdict


def ended(
    desk: ModelCaller, state: Question, text: str, citations: list[Citation]
) -> tuple[dict[str, Note | None], Verdict]:
    """The end of a run: an answer, which is also a note, or "unknown" where the text is empty."""
    if not text:
        return {}, conclude("unknown", "", [])
    found = note(state.question, text, citations)
    return {"answer": found}, answered(desk, text, [*state.notes.values(), found])


def declarative(answer: str) -> bool:
    """Whether an answer states something: neither empty, nor "unknown", nor a guess, nor a question."""
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
"""What says that there is no answer, guesses, or asks back; a pattern has to fit the whole of what is said."""
