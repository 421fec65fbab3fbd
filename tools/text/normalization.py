"""Normalization of text."""

import re
import unicodedata

MAX_TITLE_CHARS = 200
# Soft hyphens and byte order marks are invisible, and would cut words in two for every search.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\ufeff]")
_SPACES = re.compile("[\u2000-\u200a\u202f\u205f]")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85]")
# Marks that combine with the letter before them are among these; no other character of theirs is a letter.
_MARKS = re.compile(r"[^\w\s\x00-\x7f]{31,}")
MOST_MARKS = 30
"""Combining marks per letter (Unicode's stream-safe text): composing takes the square of their number."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_WRAPPED = re.compile(r"^([^\W\d_][^\n|]{53,158}[^\s.!?:;|])\n(?=[^\W\d_][^\n|]*$)", re.MULTILINE)


def sanitize(text: str) -> str:
    """Return the text without characters that databases refuse: NUL is removed, lone surrogates become U+FFFD."""
    return _SURROGATES.sub("\ufffd", text.replace("\x00", ""))


def normalize(text: str) -> str:
    """Line ends as "\\n", spaces as " ", canonical composition (NFC), without what is invisible or cannot be stored."""
    text = _INVISIBLE.sub("", _SPACES.sub(" ", _LINE_ENDS.sub("\n", text)))
    return unicodedata.normalize("NFC", _MARKS.sub(_thinned, _SURROGATES.sub("\ufffd", text)))


def _thinned(run: re.Match[str]) -> str:
    """Return the run with at most MOST_MARKS combining marks per letter."""
    characters: list[str] = []
    marks = 0
    for character in run[0]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= MOST_MARKS:
            characters.append(character)
    return "".join(characters)


def unwrap_lines(text: str) -> str:
    """Return the same text with a space for every line end that only wraps a line.

    A line of usual width that ends within a sentence, before a line that starts with a letter, is wrapped.
    """
    return _WRAPPED.sub(r"\1 ", text)


def single_line(text: str) -> str:
    """Return the text with all white space, including line ends, as single spaces."""
    return " ".join(text.split())


def shorten(text: str) -> str:
    """Return the beginning of a message on one line."""
    return single_line(text[:3_000])[:300]


def comparison_key(text: str) -> str:
    """Return a text's form for word-for-word comparison: case-folded, on one line."""
    return single_line(text).casefold()


def title_from(text: str | None) -> str | None:
    """Return a title of one line and limited length, or None if nothing is left."""
    return single_line(text or "")[:MAX_TITLE_CHARS].strip() or None
