"""The chunker of the hybrid system (section 3.1): questions with the following sentences, others in threes."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from sleuth.tools.text import Span

SENTENCE_CHARS = 200
"""The most of a sentence that the paper keeps (table 5)."""
CHUNK_CHARS = 3 * SENTENCE_CHARS
"""The most that a chunk may have (table 5)."""
TOGETHER = 3
"""Sentences in a chunk without a question."""

# The words of the paper's appendix B.
_ASKING = frozenset(
    {*("who", "what", "when", "where", "why", "how", "which", "whom", "whose"), *("is", "are", "was", "were")}
    | {*("can", "could", "do", "does", "did"), *("has", "have", "had"), *("will", "would", "should")}
)
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_QUESTION_END = re.compile(r"[?？][\"'”’)\]]*\s*$")


class _Piece(NamedTuple):
    start: int
    end: int
    asks: bool


def chunk(text: str, sentences: Sequence[Span], *, truncate: bool = False) -> list[Span]:
    """Group sentences into chunks of at most CHUNK_CHARS characters, each a span of the text.

    Args:
        text: the page's text.
        sentences: spans in order, without overlaps.
        truncate: drop what a sentence has beyond SENTENCE_CHARS, as the paper does; it is the last one of its chunk.
            By default a sentence longer than a chunk is cut, and the rest of it becomes a sentence.
    """
    pieces = [
        _Piece(*part, asks=part[0] == start and is_question(text[start:end]))
        for start, end in sentences
        for part in ([(start, min(end, start + SENTENCE_CHARS))] if truncate else _cut(text, start, end))
    ]
    spans: list[Span] = []
    at = 0
    while at < len(pieces):
        size = 1
        while at + size < len(pieces) and _belongs(text, pieces[at : at + size + 1]):
            size += 1
        spans.append((pieces[at].start, pieces[at + size - 1].end))
        at += size
    return spans


def _cut(text: str, start: int, end: int) -> list[Span]:
    """Return a sentence in parts within the limit, cut between words where there is a space in its latter half."""
    parts: list[Span] = []
    while end - start > CHUNK_CHARS:
        space = text.rfind(" ", start + CHUNK_CHARS // 2, start + CHUNK_CHARS + 1)
        stop = space if space > start else start + CHUNK_CHARS
        parts.append((start, stop))
        start = stop + (space > start)
    return [*parts, (start, end)] if start < end else parts


def _belongs(text: str, pieces: Sequence[_Piece]) -> bool:
    """Return whether the last of some pieces belongs to the chunk of the previous ones."""
    first, last, before = pieces[0], pieces[-1], pieces[-2]
    fits = last.end - first.start <= CHUNK_CHARS and not text[before.end : last.start].strip()
    return fits and (first.asks or (not last.asks and len(pieces) <= TOGETHER))


def is_question(sentence: str) -> bool:
    """Return whether it ends with a question mark, or begins with an interrogative or auxiliary word (appendix B)."""
    first = _FIRST_WORD.match(sentence.lstrip("\"'“‘¿([ "))
    return bool(_QUESTION_END.search(sentence)) or (first is not None and first[0].casefold() in _ASKING)
