"""Cells of a survey: what a document states, its meaning as a number or date, and figures over a column."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NotRequired, cast

from typing_extensions import TypedDict

from sleuth.agents.roles.surveying import ColumnKind, Operator
from sleuth.graphs.core.answer import Citation
from sleuth.tools.text.dates import read_date


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


def _number(text: str) -> float | None:
    """Return the first number of a text; commas and points are read as separators by their places."""
    found = _NUMBER.search(text)
    if not found:
        return None
    digits = re.sub(r"[ '’ ]", "", found.group().replace("−", "-"))
    last = max(digits.rfind(","), digits.rfind("."))
    whole, fraction = (digits[:last], digits[last + 1 :]) if last > 0 else (digits, "")
    marks = Counter(mark for mark in digits if mark in ",.")
    if len(fraction) == 3 and (len(marks) == 1) and (digits[last] == "," or marks["."] > 1):
        whole, fraction = digits, ""  # only thousands
    return float(f"{re.sub('[,.]', '', whole)}.{fraction or 0}")


def meets(row: Row, conditions: Iterable[Condition], kinds: Mapping[str, ColumnKind]) -> bool:
    """Return whether a document meets all conditions; a cell that is not counted meets none."""
    return all(_holds(row[each["column"]], each, kinds[each["column"]]) for each in conditions)


def _holds(cell: Cell, condition: Condition, kind: ColumnKind) -> bool:
    value, wanted = counted_value(kind, cell), read_value(kind, condition["value"])
    if value is None or wanted is None:
        return False
    if kind == "date":  # "2027" is the whole year
        value = str(value)[: len(str(wanted))]
    match condition["operator"]:
        case ">=":
            return value >= wanted  # type: ignore[operator]  # both are of the same kind
        case "<=":
            return value <= wanted  # type: ignore[operator]
        case "contains":
            return str(wanted) in str(value)
    return value == wanted


def is_counted(cell: Cell) -> bool:
    """Return whether a cell has a value that is not in doubt."""
    return bool(cell["value"]) and not cell.get("doubt")


def cell_text(cell: Cell) -> str:
    """Return a cell as it is shown."""
    return f"{cell['value']} (in doubt: {cell['doubt']})" if cell.get("doubt") else cell["value"] or "–"


def counted_value(kind: ColumnKind, cell: Cell) -> Value | None:
    """Return the value of a cell as it is compared; None if it is not counted."""
    return read_value(kind, cell["value"]) if is_counted(cell) else None


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
            numbers = cast(list[float], values)
            total, mean = sum(numbers), sum(numbers) / len(numbers)
            spread = f"smallest {min(numbers):,.10g}, largest {max(numbers):,.10g}"
            return [*lines, f"{name}: sum {total:,.10g}, mean {mean:,.6g}, {spread}"]
        case "date":
            return [*lines, f"{name}: earliest {min(map(str, values))}, latest {max(map(str, values))}"]
    counts = Counter(values).most_common()
    if kind == "yes-no" or (len(counts) < len(values) and len(counts) <= _GROUPS):
        texts = {read_value(kind, row[name]["value"]): row[name]["value"] for row in reversed(rows)}  # as first stated
        shares = ", ".join(f"{value if kind == 'yes-no' else texts[value]} {count}" for value, count in counts)
        lines.append(f"{name}: {shares}")
    return lines
