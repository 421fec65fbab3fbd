"""Words and sentences of a text in any script, as spans of characters."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from sleuth.tools.text.normalization import unwrap_lines

Shape = Literal["name", "number", "plain", "caseless", "unspaced"]
Gap = Literal["close", "comma", "break"]

# Marks that `\w` leaves out though they are parts of words: Hebrew and Arabic vowels, and Indic to Burmese scripts.
_LETTER = r"(?:[^\W_]|[\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u109f])"
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = re.compile(rf"{_LETTER}+(?:['’.&\-‐]{_LETTER}+)*")
_POSSESSIVE = re.compile(r"['’](?:s|S)?$")
_IGNORED = re.compile(r"['’.&\-‐]")
_COMBINING = re.compile("[\u0300-\u036f]")
_CLOSE_GAP = re.compile(r"(?:\.?\s|\s?&\s?|\s?[-–/]\s?)?")


class Word(NamedTuple):
    """A word: its span, normalized form, shape, and the gap before it."""

    start: int
    end: int
    form: str
    shape: Shape
    gap: Gap


def tokenize(text: str, start: int = 0, end: int | None = None) -> list[Word]:
    """Return the words of a text, or of a part of it."""
    words: list[Word] = []
    last = start
    for match in _WORD.finditer(text, start, len(text) if end is None else end):
        form, shape = _reading(match.group())
        if form:
            words.append(Word(match.start(), match.end(), form, shape, _gap(text[last : match.start()])))
            last = match.end()
    return words


def name_key(text: str) -> str:
    """Return a name's normalized form: without case, accents of European scripts, punctuation and
    possessive endings.
    """
    return " ".join(word.form for word in tokenize(text))


@lru_cache(maxsize=1 << 16)
def _reading(raw: str) -> tuple[str, Shape]:
    form = raw
    if not raw.isascii():
        form = unicodedata.normalize("NFC", _COMBINING.sub("", unicodedata.normalize("NFKD", raw)))
    return _IGNORED.sub("", _POSSESSIVE.sub("", form)).casefold(), _shape(raw)


def _shape(raw: str) -> Shape:
    first = raw[0]
    if first.isupper() or first.istitle():
        return "name"
    if first.isdigit():
        return "number"
    if first.islower():
        return "name" if any(map(str.isupper, raw[1:3])) else "plain"  # iPhone, eBay
    return "unspaced" if _UNSPACED.match(raw) else "caseless"


@lru_cache(maxsize=1 << 10)
def _gap(between: str) -> Gap:
    if _CLOSE_GAP.fullmatch(between):
        return "close"
    return "comma" if between == ", " else "break"


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
