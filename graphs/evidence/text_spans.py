"""Positions of quotes and answers in a text, in characters."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from sleuth.tools.text import SENTENCE_END

_MARKS = re.compile(r"(?<!\s)\s*+\[\d+(?:\s*,\s*\d+)*\]")


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Return the position of a quote in a text; letter case and runs of white space do not matter."""
    words = quote.strip().strip("\"'“”‘’").split()
    if not words:
        return None
    found = re.search(r"\s+".join(re.escape(word) for word in words), text, re.IGNORECASE)
    return found.span() if found else None


def find_sentence(answer: str, text: str) -> tuple[int, int] | None:
    """Return the first sentence or line of a text, except headings, that contains an answer as whole words."""
    return next(find_sentences(answer, text), None)


def find_sentences(answer: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences or lines of a text, except headings, that contain an answer as whole words, in characters."""
    words = strip_marks(answer).rstrip(".").split()
    if words and " ".join(words).casefold() not in ("yes", "no"):  # any sentence may contain a "no"
        ends = [end.span() for end in SENTENCE_END.finditer(text)]
        spans = (_sentence_around(found.span(), ends, text) for found in find_words(words, text))
        yield from (span for span in spans if not text.startswith("#", span[0]))


def find_words(words: Sequence[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a sequence of whole words; letter case and white space between them do not matter."""
    pattern = r"(?<!\w)" + r"\s+".join(re.escape(word) for word in words) + r"(?!\w)"
    return re.finditer(pattern, text, re.IGNORECASE)


def _sentence_around(span: tuple[int, int], ends: Sequence[tuple[int, int]], text: str) -> tuple[int, int]:
    """Return the sentence around a span, given the white space that ends the sentences of the text."""
    after = bisect_left(ends, span[1], key=itemgetter(0))
    before = bisect_right(ends, span[0], hi=after, key=itemgetter(1))
    return ends[before - 1][1] if before else 0, ends[after][0] if after < len(ends) else len(text.rstrip())


def strip_marks(answer: str) -> str:
    """Return an answer without citation marks such as [2] and without surrounding white space."""
    return _MARKS.sub("", answer).strip()
