"""Plain text, Markdown and tables that somebody means ill with: name, what becomes of it, and its bytes."""

import codecs
from collections.abc import Callable

READ = ""
"""Marks a file that is read; any other value is a part of the reason for its refusal."""
EITHER = "?"
"""A file that may be read or refused, depending on the parser's release; nothing else may come of it."""
GIVEN_UP = " to read. Split it, or raise SLEUTH_FILE_"
"""A file that takes more processor time or memory than it may."""

Made = dict[str, tuple[str, Callable[[], bytes]]]

SAMPLE = "The miller of Varn kept geese. "


def _text(text: str) -> Callable[[], bytes]:
    return lambda: text.encode("utf-8", "surrogatepass")


def characters() -> Made:
    """Characters that break code in which each character is a letter."""
    return {
        "marks-on-a-letter.txt": (READ, _text("a" + "\u0301\u0316" * 60_000 + " b")),
        "utf-16-lone-halves.txt": (READ, lambda: codecs.BOM_UTF16_LE + b"A\x00\x00\xd8B\x00\x00\xdc" * 99),
        "noise.txt": ("binary data", lambda: bytes(7 * n * n % 251 for n in range(20_000))),
        "terminal.txt": (EITHER, _text("\x1b]0;owned\x07\x1b[2J" + SAMPLE * 99)),
    }


def sizes() -> Made:
    """Long lines and many of them."""
    return {
        "a-line-of-50-megabytes.txt": ("at most", lambda: b"goose " * (50_000_000 // 6)),
        "a-word-of-5-megabytes.txt": (READ, lambda: b"goose" * 1_000_000),
        "line-ends-of-50-megabytes.txt": ("no text", lambda: b"\n" * 50_000_000),
    }


def markdown() -> Made:
    """Markup that takes the square of its length where it is read carelessly."""
    return {
        "quotes-in-quotes.md": (READ, _text(">" * 200_000 + " x")),
        "brackets.md": (READ, _text("[" * 100_000 + "]" * 100_000)),
        "table-of-one-row.md": (READ, _text("|a" * 50_000 + "\n" + "|-" * 50_000 + "\n")),
        "links-to-files.md": (READ, _text("![x](file:///etc/passwd) <iframe src='file:///etc/passwd'></iframe> " * 9)),
    }


def tables() -> Made:
    """Tables of values that grow when they are read."""
    return {
        "wide.csv": ("at most", lambda: b"," * 600_000 + b"\n" + (b"x" * 99 + b",y\n") * 110_000),
    }
