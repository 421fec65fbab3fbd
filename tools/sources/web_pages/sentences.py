"""Sentences of a page's text, and which of them are questions."""

import re

from sleuth.tools.sources.web_pages.page import Span

# The words of the paper's appendix B.
_ASKING = frozenset(
    {*("who", "what", "when", "where", "why", "how", "which", "whom", "whose"), *("is", "are", "was", "were")}
    | {*("can", "could", "do", "does", "did"), *("has", "have", "had"), *("will", "would", "should")}
)
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_QUESTION_END = re.compile(r"[?？][\"'”’)\]]*\s*$")
_SPACE = re.compile(r"\s")


def sentences(text: str) -> list[Span]:
    """Return the spans of the sentences of a text in order, trimmed.

    A line end is ordinary white space: a line of its own belongs to the following sentence, as in the paper's splitter
    (Blingfire).
    """
    import sentencex

    spans: list[Span] = []
    start = 0
    # It fails on some white space characters next to a full stop.
    for sentence in sentencex.segment("en", _SPACE.sub(" ", text)):
        end = start + len(sentence)
        if stripped := sentence.strip():
            begin = start + len(sentence) - len(sentence.lstrip())
            spans.append((begin, begin + len(stripped)))
        start = end
    return spans


def is_question(sentence: str) -> bool:
    """Return whether it ends with a question mark, or begins with an interrogative or auxiliary word (appendix B)."""
    first = _FIRST_WORD.match(sentence.lstrip("\"'“‘¿([ "))
    return bool(_QUESTION_END.search(sentence)) or (first is not None and first[0].casefold() in _ASKING)
