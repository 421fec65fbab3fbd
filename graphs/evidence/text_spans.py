"""Positions of quotes and answers in a text, in characters."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from sleuth.tools.text import Span, sentence_spans

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
        matches = list(find_words(words, text))
        sentences = sentence_spans(text) if matches else []
        spans = (_around(found.span(), sentences) for found in matches)
        yield from (span for span in spans if not text.startswith("#", span[0]))


def find_words(words: Sequence[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a sequence of whole words; letter case and white space between them do not matter."""
    pattern = r"(?<!\w)" + r"\s+".join(re.escape(word) for word in words) + r"(?!\w)"
    return re.finditer(pattern, text, re.IGNORECASE)


def _around(span: Span, sentences: Sequence[Span]) -> Span:
    """Return the span from the beginning of the sentence in which a span begins to the end of the one where it ends."""
    first, last = (bisect_right(sentences, at, key=itemgetter(0)) - 1 for at in (span[0], span[1] - 1))
    return sentences[first][0], sentences[last][1]


def strip_marks(answer: str) -> str:
    """Return an answer without citation marks such as [2] and without surrounding white space."""
    return _MARKS.sub("", answer).strip()
