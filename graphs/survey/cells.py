"""Cells of a survey: what a document states, its meaning as a number or date, and figures over a column."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NotRequired, cast

from typing_extensions import TypedDict

from sleuth.agents.roles.surveying import ColumnKind, Operator
from sleuth.graphs.core.answer import Citation
from sleuth.graphs.evidence.comparison import read_date


class Column(TypedDict):
    """A column: a question that is asked of each document, and how its answers are read."""

    name: str
    question: str
    kind: ColumnKind


class Condition(TypedDict):
    """A condition on a column that a document has to meet to count."""

    column: str
    operator: Operator
    value: str


class Cell(TypedDict):
    """The statement of a document: `value` is empty if there is none, and a cell with a `doubt` is not counted."""

    value: str
    citations: list[Citation]
    doubt: NotRequired[str]


Row = dict[str, Cell]
"""The cells of a document by column."""

Value = str | float
"""A value as it is compared: a number, an ISO date or the beginning of one, yes or no, or a text in lower case."""

_NUMBER = re.compile(r"[-−]?\d+(?:[ ,.'’ ]\d+)*")
_BEFORE = re.compile(r"([A-Z]{0,2}[$€£¥₹]|\b[A-Z]{3})\s*[-−]?$")
_AFTER = re.compile(r"[\s-]*([A-Z]{0,2}[$€£¥₹]|[^\W\d_]+(?:\s?(?:/|per)\s?[^\W\d_]+)?|[%‰]|°\s?[CF]?)")
_SCALE = re.compile(r"[\s-]*(thousand|million|billion|trillion|mn|bn)\b", re.IGNORECASE)
_SCALES = {"thousand": 1e3, "million": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
_CURRENCIES = {
    **{"$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "€": "EUR", "eur": "EUR", "euro": "EUR"},
    **{"£": "GBP", "gbp": "GBP", "¥": "JPY", "jpy": "JPY", "yen": "JPY"},
}
_NO_UNITS = {"a", "and", "as", "at", "by", "for", "from", "in", "of", "on", "or", "since", "the", "to", "with"}
_GROUPS = 8
"""Values of a text column that are counted one by one."""


def read_value(kind: ColumnKind, text: str) -> Value | None:
    """Return the meaning of a cell's text; None if it has none of this kind."""
    match kind:
        case "number":
            return _number(text)
        case "date":
            return read_date(text)
        case "yes-no":
            word = re.split(r"\W", text.strip().casefold(), maxsplit=1)[0]
            return word if word in ("yes", "no") else None
    return " ".join(text.casefold().split()).rstrip(".") or None


def read_unit(text: str) -> str:
    """Return the currency or unit of the first number of a text in a form for comparison; empty without one.

    >>> [read_unit(text) for text in ("12 Kilograms", "EUR 3", "$1.5 million", "25", "90 km per hour")]
    ['kilogram', 'EUR', 'USD', '', 'km per hour']
    """
    number = _NUMBER.search(text)
    if not number:
        return ""
    rest = text[number.end() :]
    scale = _SCALE.match(rest)
    unit = _BEFORE.search(text[: number.start()]) or _AFTER.match(rest[scale.end() if scale else 0 :])
    stated = unit.group(1) if unit else ""
    if re.fullmatch("[A-Z]{3}", stated):  # the code of a currency
        return stated
    word = re.sub("(?<=...)s$", "", stated.casefold())  # of a plural
    return "" if word in _NO_UNITS else _CURRENCIES.get(word, word)


def _number(text: str) -> float | None:
    """Return the first number of a text; commas and points are read as separators by their places."""
    number = _NUMBER.search(text)
    if not number:
        return None
    digits = re.sub(r"[ '’ ]", "", number.group().replace("−", "-"))
    last = max(digits.rfind(","), digits.rfind("."))
    whole, fraction = (digits[:last], digits[last + 1 :]) if last > 0 else (digits, "")
    marks = Counter(mark for mark in digits if mark in ",.")
    if len(fraction) == 3 and (len(marks) == 1) and (digits[last] == "," or marks["."] > 1):
        whole, fraction = digits, ""  # only thousands
    scale = _SCALE.match(text[number.end() :])
    return float(f"{re.sub('[,.]', '', whole)}.{fraction or 0}") * (_SCALES[scale.group(1).casefold()] if scale else 1)


def meets(row: Row, conditions: Iterable[Condition], kinds: Mapping[str, ColumnKind]) -> bool:
    """Return whether a document meets all conditions; a cell that is not counted meets none."""
    return all(_holds(row[each["column"]], each, kinds[each["column"]]) for each in conditions)


def _holds(cell: Cell, condition: Condition, kind: ColumnKind) -> bool:
    value, bound = counted_value(kind, cell), read_value(kind, condition["value"])
    if value is None or bound is None:
        return False
    if kind == "date":  # "2027" is the whole year
        value = str(value)[: len(str(bound))]
    match condition["operator"]:
        case ">=":
            return value >= bound  # type: ignore[operator]  # both are of the same kind
        case "<=":
            return value <= bound  # type: ignore[operator]
        case "contains":
            return str(bound) in str(value)
    return value == bound


def is_counted(cell: Cell) -> bool:
    """Return whether a cell has a value that is not in doubt."""
    return bool(cell["value"]) and not cell.get("doubt")


def cell_text(cell: Cell) -> str:
    """Return a cell as it is shown."""
    return f"{cell['value']} (in doubt: {cell['doubt']})" if cell.get("doubt") else cell["value"] or "–"


def counted_value(kind: ColumnKind, cell: Cell) -> Value | None:
    """Return the value of a cell as it is compared; None if it is not counted."""
    return read_value(kind, cell["value"]) if is_counted(cell) else None


def _sums(name: str, rows: Sequence[Row]) -> list[str]:
    """Return the sum of a column of numbers, or of each currency and unit in it, a line each."""
    groups: dict[str, list[tuple[float, str]]] = {}
    for cell in (row[name] for row in rows):
        if (number := counted_value("number", cell)) is not None:
            groups.setdefault(read_unit(cell["value"]), []).append((cast(float, number), cell["value"]))
    lines = []
    for unit, values in groups.items():
        numbers = [number for number, _ in values]
        total, mean = sum(numbers), sum(numbers) / len(numbers)
        spread = f"smallest {min(numbers):,.10g}, largest {max(numbers):,.10g}"
        of = f" of {len(numbers)} in {unit or 'no unit'}" if len(groups) > 1 else ""
        lines.append(f"{name}: sum{of} {total:,.10g}, mean {mean:,.6g}, {spread}")
    return lines


def figures_of(column: Column, rows: Sequence[Row]) -> list[str]:
    """Return what is counted over a column, a line each."""
    name, kind = column["name"], column["kind"]
    values = [value for row in rows if (value := counted_value(kind, row[name])) is not None]
    doubted = sum(bool(row[name].get("doubt")) for row in rows)
    lines = [f"{name}: stated in {len(values)}, not stated in {len(rows) - len(values) - doubted}"]
    lines[0] += f", in doubt in {doubted}" if doubted else ""
    if not values:
        return lines
    match kind:
        case "number":
            return [*lines, *_sums(name, rows)]
        case "date":
            return [*lines, f"{name}: earliest {min(map(str, values))}, latest {max(map(str, values))}"]
    counts = Counter(values).most_common()
    if kind == "yes-no" or (len(counts) < len(values) and len(counts) <= _GROUPS):
        texts = {read_value(kind, row[name]["value"]): row[name]["value"] for row in reversed(rows)}  # as first stated
        shares = ", ".join(f"{value if kind == 'yes-no' else texts[value]} {count}" for value, count in counts)
        lines.append(f"{name}: {shares}")
    return lines
