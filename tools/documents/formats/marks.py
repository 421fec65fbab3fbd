"""Marks that carry meaning, as text: links, raised and struck-through text, boxes and remarks.

Every reader writes them with these functions, so that they are the same for all formats.
"""

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import PurePosixPath
from typing import NamedTuple

from sleuth.tools.text.normalization import single_line

HIDDEN = "(hidden)"
"""Mark of rows, columns, sheets and slides that are not shown."""

_RAISED = str.maketrans("0123456789+-−ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿⁱ")
_LOWERED = str.maketrans("0123456789+-−", "₀₁₂₃₄₅₆₇₈₉₊₋₋")
_ORDINAL = re.compile("st|nd|rd|th|e|er|ère|re|ème|me|mes|le|lle|o|a|os|as|tm|sm|[^\\w()]+", re.IGNORECASE)
"""Raised text that is no power, as in 1st, XIXe and Mme."""
_NOTE_BEFORE = re.compile(r"(?:[^\W\d_]{4}|[.,;:!?”»’])\Z")
"""The end of a text after which a raised number is that of a note."""
_PAGES = frozenset({"", ".html", ".htm", ".xhtml", ".php", ".asp", ".aspx", ".jsp", ".xml"})
_PICTURES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".svg", ".webp"})

_SCRIPTS = frozenset({"javascript", "data", "about", "blob"})


class Run(NamedTuple):
    """A piece of a paragraph with the same marks."""

    text: str
    raised: bool = False
    struck: bool = False
    address: str = ""
    hidden: bool = False


def written(runs: Iterable[Run]) -> str:
    """Return the text of a paragraph with its marks and without hidden runs; adjacent runs with the same marks are one
    piece.
    """
    text = ""
    for address, linked in groupby((run for run in runs if run.text and not run.hidden), lambda run: run.address):
        inner = ""
        for is_struck, pieces in groupby(linked, lambda run: run.struck):
            piece = ""
            for is_raised, same in groupby(pieces, lambda run: run.raised):
                joined = "".join(run.text for run in same)
                piece += raised(joined, text + inner + piece) if is_raised else joined
            inner += struck(piece) if is_struck else piece
        text += link(inner, address) if address else inner
    return text


def link(text: str, address: str) -> str:
    """Return a link as Markdown; only its text if it leads nowhere else, and only one of two that are equal.

    A relative address is kept if it is that of a file, such as a form, and not that of another page of a site.
    """
    address = address.strip().replace(" ", "%20")
    scheme = re.match(r"([a-z][a-z0-9+.-]*):", address, re.IGNORECASE)
    suffix = PurePosixPath(re.split("[?#]", address)[0]).suffix.lower()
    is_kept = scheme[1].lower() not in _SCRIPTS if scheme else suffix not in _PAGES | _PICTURES
    bare = re.sub(r"^(?:mailto:|tel:|https?://)|/$", "", address)
    return _around(text, "[", f"]({address})") if is_kept and bare and bare not in text else text


def raised(text: str, before: str = "") -> str:
    """Return superscript text: digits and signs as such characters, a number after a word as that of a note, [2]."""
    inner = text.strip()
    if inner.isdecimal() and _NOTE_BEFORE.search(before):
        return f"[{inner}]"
    return text if _ORDINAL.fullmatch(inner) or inner.startswith("[") else text.replace(inner, power(inner))


def power(text: str) -> str:
    """Return the power of an equation: digits and signs as superscript characters, otherwise after ^."""
    return _script(text, _RAISED, "^")


def index(text: str) -> str:
    """Return an index of an equation: digits and signs as subscript characters, otherwise after _."""
    return _script(text, _LOWERED, "_")


def _script(text: str, characters: dict[int, int], sign: str) -> str:
    compact = re.sub(r"\s", "", text)
    if all(ord(character) in characters for character in compact):
        return compact.translate(characters)
    return f"{sign}{text}" if re.fullmatch(r"\w+|\W", text) else f"{sign}({text})"


def struck(text: str) -> str:
    """Return struck-through text as Markdown."""
    return _around(text, "~~", "~~") if re.search(r"\w", text) else text


def _around(text: str, before: str, after: str) -> str:
    inner = single_line(text)
    start, end = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{start}{before}{inner}{after}{end}" if inner else text


def box(*, checked: bool) -> str:
    """Return a box of a form."""
    return "☑" if checked else "☐"


def remark(kind: str, text: str, author: str = "") -> str:
    """Return a note or a comment that follows its paragraph or cell; empty if it has no text."""
    by = f" by {single_line(author)}" if author.strip() else ""
    return f"[{kind}{by}: {text.strip()}]" if text.strip() else ""
