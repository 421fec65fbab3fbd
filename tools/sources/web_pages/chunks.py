"""The chunker of the hybrid system (section 3.1): questions with the following sentences, others in threes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sleuth.tools.sources.web_pages.page import Span
from sleuth.tools.sources.web_pages.sentences import is_question

CHUNK_CHARS = 200 * 3
"""The most that a sentence, and a chunk, may have (the paper's table 5)."""
TOGETHER = 3
"""Sentences in a chunk."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunks:
    """Spans of a text in order; `cut` are spans in no chunk, because their sentence was too long."""

    spans: tuple[Span, ...]
    cut: tuple[Span, ...] = ()


class _Piece(NamedTuple):
    start: int
    end: int
    asks: bool


def chunk(
    text: str,
    sentences: Sequence[Span],
    *,
    limit: int = CHUNK_CHARS,
    together: int = TOGETHER,
    keep_rest: bool = True,
) -> Chunks:
    """Group sentences into chunks of at most `limit` characters, each a span of the text.

    Args:
        text: the page's text.
        sentences: spans in order, without overlaps.
        limit: a longer sentence is cut, and no chunk exceeds it.
        together: the number of sentences in a chunk without a question.
        keep_rest: the rest of a cut sentence becomes a sentence; otherwise it is dropped, as in the paper.
    """
    pieces: list[_Piece] = []
    cut: list[Span] = []
    for start, end in sentences:
        asks = is_question(text[start:end])
        parts = _cut(text, start, end, limit)
        if not keep_rest and len(parts) > 1:
            cut.append((parts[0][1], end))
            parts = parts[:1]
        pieces += (_Piece(*part, asks and part[0] == start) for part in parts)
    return Chunks(spans=tuple(_join(text, pieces, limit, together)), cut=tuple(cut))


def _cut(text: str, start: int, end: int, limit: int) -> list[Span]:
    """Return a sentence in parts within the limit, cut between words where there is a space in its latter half."""
    parts: list[Span] = []
    while end - start > limit:
        space = text.rfind(" ", start + limit // 2, start + limit + 1)
        stop = space if space > start else start + limit
        parts.append((start, stop))
        start = stop + (space > start)
    return [*parts, (start, end)] if start < end else parts


def _join(text: str, pieces: Sequence[_Piece], limit: int, together: int) -> list[Span]:
    spans: list[Span] = []
    at = 0
    while at < len(pieces):
        first, size = pieces[at], 1
        while at + size < len(pieces) and _goes_on(text, pieces[at : at + size + 1], limit, together):
            size += 1
        spans.append((first.start, pieces[at + size - 1].end))
        at += size
    return spans


def _goes_on(text: str, pieces: Sequence[_Piece], limit: int, together: int) -> bool:
    """Return whether the last of some pieces belongs to the chunk of the previous ones."""
    first, last, before = pieces[0], pieces[-1], pieces[-2]
    fits = last.end - first.start <= limit and not text[before.end : last.start].strip()
    return fits and (first.asks or (not last.asks and len(pieces) <= together))
