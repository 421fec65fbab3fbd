"""Splitting of a document's text into passages: at headings, paragraphs, rows and sentences, in this order."""

import re
from collections.abc import Iterator

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from sleuth.tools.text.normalization import unwrap_lines

CHUNK_CHARS = 800
"""Maximum length of a passage; with its title it fits the 256 tokens of the embedded embedder."""
HEADING_CHARS = 200
"""Additional length of a passage for a heading that would otherwise be a passage by itself."""

BLOCK_CHARS = 50_000
"""Longer texts are split in pieces."""

_LINE_TYPES = frozenset({"text/csv", "text/tab-separated-values"})
_PLAIN_TYPES = frozenset(
    {
        "text/plain",
        "text/x-source",
        "application/pdf",
        "application/rtf",
        "message/rfc822",
        "application/json",
        "application/jsonl",
        "application/x-subrip",
        "text/vtt",
    }
)
_HEADING = r"(?:#{1,6} [^\n]*|[^\W_][^\n|]{0,78}[^\s.!?:;,|\"”’)])"
_HEADINGS_AT_END = re.compile(rf"(?:\A|\n\s*\n)({_HEADING}(?:\s*\n\s*\n{_HEADING})*)\Z")


def split(text: str, media_type: str) -> list[tuple[int, int]]:
    """Return spans (start, end) in characters, in order, without overlaps or white space at their ends.

    Together they contain every character that is not white space. None is longer than CHUNK_CHARS, or CHUNK_CHARS +
    HEADING_CHARS with a heading that would otherwise be a passage by itself.
    """
    splitter = MarkdownSplitter(CHUNK_CHARS) if is_markdown(media_type) else TextSplitter(CHUNK_CHARS)
    # The splitter prefers any line end to the end of a sentence, so meaningless line ends are replaced first.
    unwrapped = text if media_type in _LINE_TYPES else unwrap_lines(text)
    spans = [
        _trim(text, begin + start, begin + start + len(chunk))
        for begin, end in _blocks(unwrapped)
        for start, chunk in splitter.chunk_indices(unwrapped[begin:end])
    ]
    spans = [(start, end) for start, end in spans if start < end]
    return spans if media_type in _LINE_TYPES else _with_headings(text, spans)


def is_markdown(media_type: str) -> bool:
    """Return whether the text of files of this type is Markdown."""
    return media_type not in _PLAIN_TYPES | _LINE_TYPES


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the whole text in pieces that end at a paragraph, line or word where there is one.

    The splitter's time grows with the square of a stretch in which it finds no boundary.
    """
    start = 0
    while start < len(text):
        end = start + BLOCK_CHARS
        if end < len(text):
            places = (text.rfind(boundary, start + 1, end) for boundary in ("\n\n", "\n", " "))
            end = next((place for place in places if place > 0), end)
        yield start, end
        start = end


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    chunk = text[start:end]
    return start + len(chunk) - len(chunk.lstrip()), end - len(chunk) + len(chunk.rstrip())


def _with_headings(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Move headings from the end of a span to the beginning of the one that they head."""
    result: list[tuple[int, int]] = []
    for start, end in spans:
        last_start, last_end = result[-1] if result else (0, 0)
        headings = _HEADINGS_AT_END.search(text[last_start:last_end])
        heading = last_start + headings.start(1) if headings else None
        if heading is not None and end - heading <= CHUNK_CHARS + HEADING_CHARS:
            result.pop()
            before, after = _trim(text, last_start, heading)
            result += [(before, after), (heading, end)] if before < after else [(heading, end)]
        else:
            result.append((start, end))
    return result
