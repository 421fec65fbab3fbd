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


def _numbers(*values: Value) -> None:
    for value in values:
        if not isinstance(value, int | float):
            raise NotCalculable(f"It has a {type(value).__name__} where a number should be.")


def _arithmetic(function: Callable[..., Value]) -> Callable[..., Value]:
    """Restrict a function to numbers: text and lists would be repeated or formatted."""

    def applied(*values: Value) -> Value:
        _numbers(*values)
        return function(*values)

    return applied


def _over_list(function: Callable[..., Value], *, or_dates: bool = False) -> Callable[..., Value]:
    """Apply a function to numbers (or to dates) that are given as arguments, or as one list."""

    def applied(*values: Value) -> Value:
        given = values[0] if len(values) == 1 and isinstance(values[0], list) else list(values)
        if not (or_dates and all(isinstance(each, date) for each in given)):
            _numbers(*given)
        return function(given)

    return applied


def _of_dates(function: Callable[..., int]) -> Callable[..., int]:
    def applied(*days: Value) -> int:
        if not all(isinstance(day, date) for day in days):
            raise NotCalculable('It needs dates, as in date("2024-02-29").')
        return function(*days)

    return applied


def _sum_or_later(left: Value, right: Value) -> Value:
    if isinstance(left, date) and isinstance(right, int):
        return left + timedelta(days=right)
    return _arithmetic(operator.add)(left, right)


def _difference(left: Value, right: Value) -> Value:
    """Return the difference of numbers, or of dates in days."""
    if isinstance(left, date) and isinstance(right, date):
        return (left - right).days
    if isinstance(left, date) and isinstance(right, int):
        return left - timedelta(days=right)
    return _arithmetic(operator.sub)(left, right)


def _power(base: float, exponent: float) -> Value:
    """Return a power, unless computing it would already exceed the limits."""
    _numbers(base, exponent)
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
    "abs": _arithmetic(abs),
    "ceil": _arithmetic(math.ceil),
    "change": _arithmetic(lambda before, after: (after - before) / before * 100),
    "date": _date,
    "days": _of_dates(lambda earlier, later: (later - earlier).days),
    "exp": _arithmetic(math.exp),
    "float": _arithmetic(float),
    "floor": _arithmetic(math.floor),
    "int": _arithmetic(int),
    "len": _over_list(len),
    "log": _arithmetic(math.log),
    "log10": _arithmetic(math.log10),
    "max": _over_list(max, or_dates=True),
    "mean": _over_list(statistics.fmean),
    "median": _over_list(statistics.median),
    "min": _over_list(min, or_dates=True),
    "month": _of_dates(lambda day: day.month),
    "percent": _arithmetic(lambda part, whole: part / whole * 100),
    "pow": _power,
    "round": _arithmetic(_round),
    "sqrt": _arithmetic(math.sqrt),
    "stdev": _over_list(statistics.stdev),
    "sum": _over_list(sum),
    "year": _of_dates(lambda day: day.year),
    "years": _of_dates(_years),
}

_OPERATORS: dict[type, Callable[..., Value]] = {
    ast.Add: _sum_or_later,
    ast.Sub: _difference,
    ast.Mult: _arithmetic(operator.mul),
    ast.Div: _arithmetic(operator.truediv),
    ast.FloorDiv: _arithmetic(operator.floordiv),
    ast.Mod: _arithmetic(operator.mod),
    ast.Pow: _power,
    ast.USub: _arithmetic(operator.neg),
    ast.UAdd: _arithmetic(operator.pos),
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
