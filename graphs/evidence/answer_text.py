"""An answer as one text for a chat: the finding with numbered marks, followed by the quote of each mark."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sleuth.graphs.core.answer import Answer, Citation, Verdict, is_weak
from sleuth.tools.text.markdown import escape_markdown
from sleuth.tools.text.normalization import single_line


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkedText:
    """A text with footnotes; `marks` are its marks, in order: start and end in characters, and the citation's index.

    `form` is that of a mark, with `{}` for its number.
    """

    text: str
    marks: list[tuple[int, int, int]]
    form: str


def form_of_marks(text: str) -> str:
    """Return the form of the marks in a text, which the text itself does not contain.

    >>> form_of_marks("Varn"), form_of_marks("Varn [3]")
    ('[{}]', '[^{}]')
    """
    carets = ""
    while re.search(rf"\[{re.escape(carets)}\d", text):
        carets += "^"
    return f"[{carets}{{}}]"


def with_footnotes(verdict: Verdict) -> MarkedText:
    """Return the text of a chat message, as Markdown; without an answer it explains the reason."""
    marked = with_marks(verdict["text"].strip(), verdict["citations"], escape=escape_markdown)
    reason = "The budget was used up before there was an answer.\n\n" if verdict["status"] == "out_of_budget" else ""
    text = f"{reason}{marked.text}".strip()
    marks = [(len(reason) + start, len(reason) + end, at) for start, end, at in marked.marks]
    notes = []
    for number, cited in enumerate(verdict["citations"], start=1):
        where = single_line(cited["title"] or cited.get("reference", "") or cited["document"])
        note = escape_markdown(f"{where + ': ' if where else ''}“{single_line(cited['quote'])}”")
        notes.append(f"{marked.form.format(number)} {note}")
    is_weakly_supported = is_weak(verdict["status"], verdict.get("support"))
    weak = "The sources support this answer only weakly." if is_weakly_supported else ""
    return MarkedText(text="\n\n".join(filter(None, [text, "\n".join(notes), weak])), marks=marks, form=marked.form)


def message_of(answer: Answer) -> str:
    """Return an answer as the text of a chat message, without a remark on weak support."""
    return with_footnotes(Verdict(status=answer.status, text=answer.text, citations=answer.citations)).text


def with_marks(text: str, citations: Sequence[Citation], *, escape: Callable[[str], str] = str) -> MarkedText:
    """Return the escaped text with the number of each citation after the sentences that it supports, or at the end."""
    foreign = (text, *(cited[name] for cited in citations for name in ("title", "quote")))
    marked, done, form = "", 0, form_of_marks("\n".join(foreign))
    marks: list[tuple[int, int, int]] = []
    for end, at in _ends(text, citations):
        mark = form.format(at + 1)
        marked += f"{escape(text[done:end])} {mark}"
        marks.append((len(marked) - len(mark), len(marked), at))
        done = end
    return MarkedText(text=marked + escape(text[done:]), marks=marks, form=form)


def cited_parts(text: str, citations: Sequence[Citation]) -> list[tuple[int, int, int]]:
    """Return the parts of a text without marks that citations support: start, end, and the citation's index."""
    starts = {0, *(end for citation in citations for end in citation.get("sentence_ends", []))}
    return [(max(start for start in starts if start < end), end, at) for end, at in _ends(text, citations) if end]


def _ends(text: str, citations: Sequence[Citation]) -> list[tuple[int, int]]:
    """Return the ends of the sentences that citations support, in order, each with the citation's index."""
    return sorted(
        (end, at) for at, citation in enumerate(citations) for end in citation.get("sentence_ends", [len(text)])
    )
