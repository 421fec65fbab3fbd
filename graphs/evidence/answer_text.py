"""An answer as one text for a chat: the finding with numbered marks, followed by the quote of each mark."""

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.graphs.core.answer import Answer, Citation, Verdict, is_weak
from sleuth.tools.text.normalization import single_line


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkedText:
    """A text with footnotes; `marks` are its marks, in order: start and end in characters, and the citation's index."""

    text: str
    marks: list[tuple[int, int, int]]


def with_footnotes(verdict: Verdict) -> MarkedText:
    """Return the text of a chat message; without an answer it explains the reason."""
    marked = with_marks(verdict["text"].strip(), verdict["citations"])
    reason = "The budget was used up before there was an answer.\n\n" if verdict["status"] == "out_of_budget" else ""
    text = f"{reason}{marked.text}".strip()
    marks = [(len(reason) + start, len(reason) + end, at) for start, end, at in marked.marks]
    notes = []
    for number, cited in enumerate(verdict["citations"], start=1):
        where = single_line(cited["title"] or cited.get("reference", "") or cited["document"])
        notes.append(f"[{number}] {where + ': ' if where else ''}“{single_line(cited['quote'])}”")
    is_weakly_supported = is_weak(verdict["status"], verdict.get("support"))
    weak = "The sources support this answer only weakly." if is_weakly_supported else ""
    return MarkedText(text="\n\n".join(filter(None, [text, "\n".join(notes), weak])), marks=marks)


def message_of(answer: Answer) -> str:
    """Return an answer as the text of a chat message, without a remark on weak support."""
    return with_footnotes(Verdict(status=answer.status, text=answer.text, citations=answer.citations)).text


def with_marks(text: str, citations: Sequence[Citation]) -> MarkedText:
    """Return the text with the number of each citation after the sentences that it supports, or at the end."""
    places = sorted((end, at) for at, each in enumerate(citations) for end in each.get("sentence_ends", [len(text)]))
    marked, done = "", 0
    marks: list[tuple[int, int, int]] = []
    for end, at in places:
        marked += f"{text[done:end]} [{at + 1}]"
        marks.append((len(marked) - len(f"[{at + 1}]"), len(marked), at))
        done = end
    return MarkedText(text=marked + text[done:], marks=marks)
