"""Safe evaluation of arithmetic written by a model: numbers, lists of numbers and dates.

An expression is Python syntax, of which simpleeval evaluates the few parts in `_PARTS`. It cannot loop, access
attributes or build text, and every intermediate value is bounded, so its length bounds its time and memory.
"""

import ast
import math
import operator
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from simpleeval import FunctionNotDefined, InvalidExpression, NameNotDefined, SimpleEval

from sleuth.tools.errors import SleuthError

MAX_CHARACTERS = 500
MAX_DEPTH = 40
MAX_INTEGER = 10**60
MAX_DECIMALS = 20
MAX_TEXT = 20
"""Characters of a date."""

Value = Any
"""A number, a date, a text of a date, or a list of values."""

_RUN_ON = re.compile(r"\b(?!0[xXoObB][\da-fA-F_]+\b)\d[\d_.]*(?:[eE][+-]?\d[\d_]*)?+[A-Za-z]")  # "1or 2": Python warns
_TYPED = str.maketrans({"×": "*", "÷": "/", "−": "-", "–": "-", "\u00a0": " "})


class NotCalculable(SleuthError):
    """An expression is not arithmetic, has no value, or exceeds a limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Calculation:
    """An expression and its value, also as people write it: ten significant digits, dates as in 2024-02-29."""

    expression: str
    value: int | float | bool | date
    text: str


def calculate(expression: str, *, today: date | None = None) -> Calculation:
    """Return the value of an arithmetic expression; `today` defines the name of that kind.

    It may contain + - * / // % **, comparisons, `and`, `or`, `not`, `a if b else c`, lists, pi, e, and the functions in
    `names()`. `date("2024-02-29")` or `date(2024, 2, 29)` makes a date; the difference of dates is in days.

    Raises:
        NotCalculable: anything else, a division by zero, or a number, list or expression that is too long.
    """
    source = expression.strip().translate(_TYPED)
    if len(source) > MAX_CHARACTERS:
        raise NotCalculable(f"An expression may have {MAX_CHARACTERS} characters, not {len(source):,}.")
    shown = repr(source if len(source) <= 60 else source[:60] + "…")
    if not source.isascii() or not source.isprintable() or "\\" in source or _RUN_ON.search(source):
        raise NotCalculable(f"{shown} contains characters that arithmetic does not use.")
    constants = {"pi": math.pi, "e": math.e} | ({"today": today} if today else {})
    try:
        value = _Evaluator(constants).eval(source, ast.parse(source, mode="eval").body)
    except (NameNotDefined, FunctionNotDefined) as error:
        raise NotCalculable(f"{error}; there are {', '.join(sorted({*_FUNCTIONS, *constants}))}.") from None
    except (InvalidExpression, SyntaxError, MemoryError, RecursionError, KeyError):
        raise NotCalculable(f"{shown} is not arithmetic, or has too many parts.") from None
    except (ArithmeticError, ValueError, TypeError) as error:  # what Python's own arithmetic objects to
        raise NotCalculable(f"{shown} has no value: {error}") from None
    if isinstance(value, list | str):
        raise NotCalculable(f"{shown} is a {'list' if isinstance(value, list) else 'text'}, not a value.")
    return Calculation(expression=source, value=value, text=_written(value))


def names() -> list[str]:
    """Return the available functions."""
    return sorted(_FUNCTIONS)


_PARTS: tuple[type[ast.AST], ...] = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name)


class _Evaluator(SimpleEval):  # type: ignore[misc]
    """Evaluates the allowed parts of an expression, and bounds the value of each."""

    nodes: dict[type[ast.AST], Callable[..., Value]]

    def __init__(self, constants: dict[str, Value]) -> None:
        super().__init__(operators=_OPERATORS, functions=_FUNCTIONS, names=constants)
        parts = {part: self.nodes[part] for part in _PARTS}
        parts |= {ast.Constant: lambda node: node.value, ast.List: self._list, ast.Tuple: self._list}
        self.nodes = {part: self._within_bounds(evaluate) for part, evaluate in parts.items()}
        self._depth = 0

    def _list(self, node: ast.List | ast.Tuple) -> Value:
        return [self._eval(each) for each in node.elts]

    def _within_bounds(self, evaluate: Callable[..., Value]) -> Callable[..., Value]:
        def evaluated(node: ast.AST) -> Value:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise RecursionError
            value = _bounded(evaluate(node))
            self._depth -= 1
            return value

        return evaluated


def _bounded(value: Value) -> Value:
    """Return the value, if it is of a kind and size that is allowed."""
    if isinstance(value, list):
        return [_bounded(each) for each in value]
    if (
        isinstance(value, bool | date)
        or (isinstance(value, str) and len(value) <= MAX_TEXT)
        or (isinstance(value, int) and abs(value) <= MAX_INTEGER)
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return value
    kind = "number" if isinstance(value, int | float) else type(value).__name__
    raise NotCalculable(f"A {kind} in it is too large, or not supported in arithmetic.")


def _taking(kind: Any, function: Callable[..., Value], *, many: bool = False) -> Callable[..., Value]:  # noqa: ANN401
    """Restrict a function to a kind of values: text and lists would be repeated or formatted.

    A function of `many` gets a list, and is called with the values or with one list of them.
    """

    def applied(*values: Value) -> Value:
        given = values[0] if many and len(values) == 1 and isinstance(values[0], list) else list(values)
        for value in given:
            if not isinstance(value, kind):
                wanted = 'date, as in date("2024-02-29"),' if kind is date else "number"
                raise NotCalculable(f"It has a {type(value).__name__} where a {wanted} should be.")
        return function(given) if many else function(*given)

    return applied


_NUMBER = (int, float)


def _sum_or_later(left: Value, right: Value) -> Value:
    if isinstance(left, date) and isinstance(right, int):
        return left + timedelta(days=right)
    return _taking(_NUMBER, operator.add)(left, right)


def _difference(left: Value, right: Value) -> Value:
    """Return the difference of numbers, or of dates in days."""
    if isinstance(left, date) and isinstance(right, date):
        return (left - right).days
    if isinstance(left, date) and isinstance(right, int):
        return left - timedelta(days=right)
    return _taking(_NUMBER, operator.sub)(left, right)


def _power(base: float, exponent: float) -> Value:
    """Return a power, unless computing it would already exceed the limits."""
    if abs(exponent) > 1000 or (abs(base) > 1 and math.log10(abs(base)) * exponent > math.log10(MAX_INTEGER)):
        raise NotCalculable("A power in it is too large.")
    return base**exponent


def _round(value: float, decimals: int = 0) -> float:
    if not isinstance(decimals, int) or abs(decimals) > MAX_DECIMALS:
        raise NotCalculable(f"Numbers are rounded to at most {MAX_DECIMALS} decimals.")
    return round(value, decimals) if decimals else round(value)


def _date(*parts: Value) -> date:
    if len(parts) == 1 and isinstance(parts[0], str):
        return date.fromisoformat(parts[0])
    return date(*parts)


def _years(earlier: date, later: date) -> int:
    """Return whole years between two dates, as ages are counted."""
    return later.year - earlier.year - ((later.month, later.day) < (earlier.month, earlier.day))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "abs": _taking(_NUMBER, abs),
    "ceil": _taking(_NUMBER, math.ceil),
    "change": _taking(_NUMBER, lambda before, after: (after - before) / before * 100),
    "date": _date,
    "days": _taking(date, lambda earlier, later: (later - earlier).days),
    "exp": _taking(_NUMBER, math.exp),
    "float": _taking(_NUMBER, float),
    "floor": _taking(_NUMBER, math.floor),
    "int": _taking(_NUMBER, int),
    "len": _taking(_NUMBER, len, many=True),
    "log": _taking(_NUMBER, math.log),
    "log10": _taking(_NUMBER, math.log10),
    "max": _taking((*_NUMBER, date), max, many=True),
    "mean": _taking(_NUMBER, statistics.fmean, many=True),
    "median": _taking(_NUMBER, statistics.median, many=True),
    "min": _taking((*_NUMBER, date), min, many=True),
    "month": _taking(date, lambda day: day.month),
    "percent": _taking(_NUMBER, lambda part, whole: part / whole * 100),
    "pow": _taking(_NUMBER, _power),
    "round": _taking(_NUMBER, _round),
    "sqrt": _taking(_NUMBER, math.sqrt),
    "stdev": _taking(_NUMBER, statistics.stdev, many=True),
    "sum": _taking(_NUMBER, sum, many=True),
    "year": _taking(date, lambda day: day.year),
    "years": _taking(date, _years),
}

_OPERATORS: dict[type, Callable[..., Value]] = {
    ast.Add: _sum_or_later,
    ast.Sub: _difference,
    ast.Mult: _taking(_NUMBER, operator.mul),
    ast.Div: _taking(_NUMBER, operator.truediv),
    ast.FloorDiv: _taking(_NUMBER, operator.floordiv),
    ast.Mod: _taking(_NUMBER, operator.mod),
    ast.Pow: _taking(_NUMBER, _power),
    ast.USub: _taking(_NUMBER, operator.neg),
    ast.UAdd: _taking(_NUMBER, operator.pos),
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _written(value: float | bool | date) -> str:
    """Return the value as people write it: ten significant digits, without an exponent below 1e15."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | date):
        return str(value)
    rounded = float(f"{value:.10g}")
    return f"{rounded:.0f}" if rounded.is_integer() and abs(rounded) < 1e15 else f"{rounded:.10g}"
