"""Sentences of a text in any script, as spans of characters."""

import re
from collections.abc import Iterator

from sleuth.tools.text.normalization import unwrap_lines

Span = tuple[int, int]
"""Start and end of a part of a text, in characters."""

_SPACE = re.compile(r"\s")
_LINE = re.compile(r"[^\n]+")


def sentence_spans(text: str, *, lines: bool = True) -> list[Span]:
    """Return the spans of the sentences of a text, in order and trimmed.

    Args:
        text: Plain text or Markdown.
        lines: Whether a line end also ends a sentence, unless it only wraps a line: for tables, lists and headings.
            Otherwise a line end is ordinary white space.

    Returns:
        Start and end in characters; together the spans cover everything but white space.
    """
    if not lines:
        return list(_split(text, 0))
    return [span for line in _LINE.finditer(unwrap_lines(text)) for span in _split(line[0], line.start())]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, and its lines of tables and lists, each on one line."""
    unwrapped = unwrap_lines(text)
    return [unwrapped[start:end] for start, end in sentence_spans(text)]


def _split(text: str, offset: int) -> Iterator[Span]:
    import sentencex

    # It fails on some white space characters next to a full stop.
    for sentence in sentencex.segment("en", _SPACE.sub(" ", text)):
        if stripped := sentence.strip():
            start = offset + len(sentence) - len(sentence.lstrip())
            yield start, start + len(stripped)
        offset += len(sentence)
