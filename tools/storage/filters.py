"""Filters of documents by their metadata: `tag=contract date>=2025-01-01 path:reports/**`."""

import operator
import re
import shlex
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Literal, get_args

from sleuth.tools.errors import UnknownName, UsageError

Field = Literal["id", "title", "author", "path", "tag", "language", "type", "date", "added"]
"""Fields that every document has; `path` is its source, `type` its suffix or media type. Others are its own."""
RESERVED = frozenset({*get_args(Field), "tags", "text", "source", "media_type", "meta", "authors", "keywords"})
"""Names that no document can have for a field of its own."""
_COLUMNS: Mapping[str, str] = {"path": "source", "tag": "tags", "type": "media_type", "added": "added_at"}
"""Columns of the catalogue whose names are not those of their fields."""
EXAMPLE = 'tag=contract date>=2025-01-01 path:reports/** !author="Ada Lovelace"'
MAX_CHARS = 2_000

_FIELDS: tuple[str, ...] = get_args(Field)
_TERM = re.compile(r"(!?)([A-Za-z][\w-]*)(>=|<=|!=|=|:|>|<)(.+)", re.DOTALL)
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    ":": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Term:
    """One condition of a filter."""

    field: str
    operator: str
    value: str
    is_negated: bool = False

    def matches(self, row: Mapping[str, Any]) -> bool:
        """Return whether a document, given as its row in the catalogue, fulfils the condition."""
        return self._holds(row) != self.is_negated

    def _holds(self, row: Mapping[str, Any]) -> bool:
        if self.field == "tag":
            return any(self._is_like(tag.lower()) for tag in row["tags"] or ())
        cells = row if self.field in _FIELDS else row["meta"]
        cell = str(cells.get(_COLUMNS.get(self.field, self.field)) or "").lower()
        match self.field:
            case "date" | "added":
                start = cell[: len(self.value)]
                return bool(start) and _COMPARISONS[self.operator](start, self.value)
            case "type":
                suffix = f".{self.value.removeprefix('.')}"
                return row["source"].lower().endswith(suffix) or self._is_like(cell)
            case "language":
                return cell == self.value
            case "path" if any(mark in self.value for mark in "*?"):
                return _glob(self.value).fullmatch(cell.replace("\\", "/")) is not None
            case _:
                is_whole = self.field in _FIELDS or self.operator == ":"
                return self._is_like(cell) if is_whole else any(map(self._fits, {cell, *cell.split(", ")}))

    def _fits(self, own: str) -> bool:
        """Compare a value, or an element of a list: numbers by value, other texts as written, no number with a text."""
        compare, texts = _COMPARISONS[self.operator], (own, self.value)
        if all(map(_NUMBER.fullmatch, texts)):
            return compare(*map(float, texts))
        are_dates = _DATE.fullmatch(own[:10]) and _DATE.fullmatch(self.value)
        return bool(own and (are_dates or not any(map(_NUMBER.fullmatch, texts)))) and compare(*texts)

    def _is_like(self, text: str) -> bool:
        return self.value in text if self.operator == ":" else self.value == text


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on a document's metadata, all of which have to hold."""

    terms: tuple[Term, ...]

    def matches(self, row: Mapping[str, Any]) -> bool:
        """Return whether a document, given as its row in the catalogue, fulfils all conditions."""
        return all(term.matches(row) for term in self.terms)

    def check_fields(self, own: Set[str]) -> None:
        """Raise UnknownName for a field that is none of all documents, and not among those of their own."""
        for term in self.terms:
            if term.field not in _FIELDS and term.field not in own:
                fields = [*_FIELDS, *sorted(own)]
                raise UnknownName("filter field", term.field, fields, f"Available: {', '.join(fields)}.")


def parse_filter(text: str) -> Filter:
    """Parse a filter.

    Terms are separated by spaces and combined with AND. `field=value` compares whole values, `field:value` finds a part
    of one, both without regard to case; quotes group words; `!` before a term negates it. Dates also take `>=`, `<=`,
    `>` and `<`, and may be years or months; own fields of documents take them for numbers and texts. A path with `*`,
    `**` or `?` is a pattern for the path, or for its end from a folder on.

    Args:
        text: the filter; an empty one matches every document.

    Raises:
        UsageError: a term cannot be parsed.
    """
    if len(text) > MAX_CHARS:
        raise UsageError(f"The filter has {len(text):,} characters, the most is {MAX_CHARS:,}.")
    return Filter(tuple(map(_term, _words(text))))


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.quotes, lexer.escape = True, "", '"', ""
    try:
        return list(lexer)
    except ValueError:
        raise UsageError(f'The filter {text!r:.200} has a quote " that is not closed.') from None


def _term(word: str) -> Term:
    match = _TERM.fullmatch(word)
    if match is None:
        raise UsageError(f"The filter has a term {word!r:.200} that is not FIELD=VALUE. Example: {EXAMPLE}")
    negation, name, sign, value = match.groups()
    field = name.lower()
    is_date = field in ("date", "added")
    if sign in (">", "<", ">=", "<=") and field in _FIELDS and not is_date:
        raise UsageError(f"`{sign}` does not work with {field}: {word!r:.200}. Use `=` or `:`.")
    if is_date:
        _check_date(value, word)
    is_negated = bool(negation) != (sign == "!=")
    return Term(field, "=" if sign == "!=" else sign, value.lower(), is_negated)


def _check_date(value: str, word: str) -> None:
    try:
        if not _DATE.fullmatch(value):
            raise ValueError
        date.fromisoformat(value + "-01-01"[len(value) - 4 :])
    except ValueError:
        raise UsageError(f"{word!r:.200} needs a date such as 2025, 2025-01 or 2025-01-31.") from None


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a path pattern.

    `**/` at the beginning of a folder matches any number of folders, another `**` any text, `*` and `?` for text
    without `/`. Each wildcard takes the nearest place at which the text up to the next wildcard of its kind fits. That
    is never worse than a later place, so the groups are atomic: a failed match does not try all combinations.
    """
    text = pattern if pattern.startswith("/") else f"**/{pattern}"
    literals = re.split(r"((?:(?<![^/])\*\*/)+|\*{2,})", text)
    pieces = [[re.escape(piece).replace(r"\?", "[^/]") for piece in each.split("*")] for each in literals[::2]]
    pieces[-1][-1] += r"\Z"
    bodies = [first + "".join(f"(?>[^/]*?{piece})" for piece in more) for first, *more in pieces]
    gaps = ["(?:.*?/)??" if wildcard.endswith("/") else ".*?" for wildcard in literals[1::2]]
    return re.compile(
        bodies[0] + "".join(f"(?>{gap}{body})" for gap, body in zip(gaps, bodies[1:], strict=True)), re.DOTALL
    )
