"""Where the sentences of a page's text stand, and which of them ask something."""

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
    """The sentences of a text in order, without the white space around them.

    A line's end is white space like any other: what a page sets on lines of its own belongs to what follows, as the
    paper's splitter (Blingfire) has it.
    """
    import sentencex

    spans: list[Span] = []
    start = 0
    # It fails on some characters of white space beside a full stop.
    for sentence in sentencex.segment("en", _SPACE.sub(" ", text)):
        end = start + len(sentence)
        if stripped := sentence.strip():
            begin = start + len(sentence) - len(sentence.lstrip())
            spans.append((begin, begin + len(stripped)))
        start = end
    return spans


def is_question(sentence: str) -> bool:
    """Whether it ends with a question mark, or begins with an interrogative or auxiliary word (appendix B)."""
    first = _FIRST_WORD.match(sentence.lstrip("\"'“‘¿([ "))
    return bool(_QUESTION_END.search(sentence)) or (first is not None and first[0].casefold() in _ASKING)
