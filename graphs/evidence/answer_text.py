"""An answer as one text for a chat: what was found, with numbered marks, and below it what each of them quotes."""

from dataclasses import dataclass
from typing import Final

from sleuth.graphs.core import Citation, Status, Verdict
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
class Footnoted:
    """`marks` are the places of the marks in `text`, in characters, one for each citation in its order."""

    text: str
    marks: list[tuple[int, int]]


def footnoted(verdict: Verdict) -> Footnoted:
    """The text of a chat message; where there is no answer it says why, in words."""
    text = "\n\n".join(part for part in (_INSTEAD[verdict["status"]], verdict["text"].strip()) if part)
    marks: list[tuple[int, int]] = []
    for number in range(1, len(verdict["citations"]) + 1):
        start = len(text) + 1
        text += f" [{number}]"
        marks.append((start, len(text)))
    notes = [_note(number, cited) for number, cited in enumerate(verdict["citations"], start=1)]
    return Footnoted(text="\n\n".join([text, "\n".join(notes)]) if notes else text, marks=marks)


def _note(number: int, cited: Citation) -> str:
    where = single_line(cited["title"] or cited.get("reference", "") or cited["document"])
    return (
        f"[{number}] {where}: “{single_line(cited['quote'])}”"
        if where
        else f"[{number}] “{single_line(cited['quote'])}”"
    )
