"""An answer as one text for a chat: the finding with numbered marks, followed by the quote of each mark."""

from dataclasses import dataclass
from typing import Final

from sleuth.graphs.core import Status, Verdict
from sleuth.tools.text import single_line

_INSTEAD: Final[dict[Status, str]] = {
    "answered": "",
    "refused": "What I have found does not suffice for an answer.",
    "unknown": "I have not found an answer in the documents.",
    "invalid_question": "The question rests on something that is not so.",
    "out_of_budget": "The budget was used up before there was an answer.",
    "waiting": "",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerText:
    """A text with footnotes; `marks` are the places of its marks, in characters, one per citation in order."""

    text: str
    marks: list[tuple[int, int]]


def with_footnotes(verdict: Verdict) -> AnswerText:
    """Return the text of a chat message; without an answer it explains the reason."""
    text = "\n\n".join(part for part in (_INSTEAD[verdict["status"]], verdict["text"].strip()) if part)
    marks: list[tuple[int, int]] = []
    for number in range(1, len(verdict["citations"]) + 1):
        start = len(text) + 1
        text += f" [{number}]"
        marks.append((start, len(text)))
    notes = []
    for number, cited in enumerate(verdict["citations"], start=1):
        where = single_line(cited["title"] or cited.get("reference", "") or cited["document"])
        notes.append(f"[{number}] {where + ': ' if where else ''}“{single_line(cited['quote'])}”")
    return AnswerText(text="\n\n".join([text, "\n".join(notes)]) if notes else text, marks=marks)
