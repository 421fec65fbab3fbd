"""Plain text, Markdown and tables that somebody means ill with: name, what becomes of it, and its bytes."""

import codecs
from collections.abc import Callable

READ = ""
"""Marks a file that is read; any other value is a part of the reason for its refusal."""
EITHER = "?"
"""A file that may be read or refused, depending on the parser's release; nothing else may come of it."""
GIVEN_UP = " Split it, save it again, or raise SLEUTH_FILE_"
"""A file that takes more processor time or memory than it may."""

Made = dict[str, tuple[str, Callable[[], bytes]]]

SAMPLE = "The miller of Varn kept geese. "
RUSSIAN, JAPANESE, CHINESE = (
    "Мельник из Варна держал гусей. " * 20,
    "粉屋はガチョウを飼っていた。" * 20,
    "磨坊主养了几只鹅。" * 20,
)
GERMAN = "Der Müller von Värn hielt Gänse, größer als üblich. " * 20

_ENCODED = {
    "utf-8-sig": GERMAN, "utf-16": GERMAN, "utf-16-le": SAMPLE * 9, "utf-16-be": SAMPLE * 9, "utf-32": GERMAN,
    "latin-1": GERMAN, "cp1252": "“Gänse” – für 5 € " * 20, "mac-roman": GERMAN, "iso8859-15": GERMAN,
    "shift-jis": JAPANESE, "euc-jp": JAPANESE, "iso-2022-jp": JAPANESE, "gb18030": CHINESE, "big5": "磨坊主" * 60,
    "koi8-r": RUSSIAN, "cp1251": RUSSIAN, "cp866": RUSSIAN, "utf-7": GERMAN,
    "euc-kr": "방앗간 주인은 거위를 길렀다. " * 20,
}  # fmt: skip


def _text(text: str) -> Callable[[], bytes]:
    return lambda: text.encode("utf-8", "surrogatepass")


def encodings() -> Made:
    """Every encoding that people use, and what is no text in any."""
    named: Made = {
        f"in-{name}.txt": (READ, lambda name=name, text=text: text.encode(name))  # type: ignore[misc]
        for name, text in _ENCODED.items()
    }
    return named | {
        "utf-16-lone-halves.txt": (READ, lambda: codecs.BOM_UTF16_LE + b"A\x00\x00\xd8B\x00\x00\xdc" * 99),
        "utf-8-cut.txt": (READ, lambda: GERMAN.encode()[:-22] + b"\xc3"),
        "noise.txt": ("binary data", lambda: bytes(7 * n * n % 251 for n in range(20_000))),
    }


def characters() -> Made:
    """Characters that break code in which each character is a letter."""
    return {
        "empty.txt": ("is empty", bytes),
        "marks-on-a-letter.txt": (READ, _text("a" + "\u0301\u0316" * 60_000 + " b")),
        "terminal.txt": (EITHER, _text("\x1b]0;owned\x07\x1b[2J" + SAMPLE * 99)),
    }


def sizes() -> Made:
    """Long lines and many of them."""
    return {
        "a-line-of-50-megabytes.txt": ("at most", lambda: b"goose " * (50_000_000 // 6)),
        "a-word-of-5-megabytes.txt": (READ, lambda: b"goose" * 1_000_000),
        "line-ends-of-50-megabytes.txt": ("no text", lambda: b"\n" * 50_000_000),
        "beyond-the-limit.txt": ("64.0 MiB are read", lambda: b"x" * ((64 << 20) + 1)),
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
        "open-quote.csv": ("not a readable table", lambda: b'a,b\n"' + b"x,y\n" * 1_000_000),
    }
