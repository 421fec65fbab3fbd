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
    excerpt = repr(source if len(source) <= 60 else source[:60] + "…")
    if not source.isascii() or not source.isprintable() or "\\" in source or _RUN_ON.search(source):
        raise NotCalculable(f"{excerpt} contains characters that arithmetic does not use.")
    constants = {"pi": math.pi, "e": math.e} | ({"today": today} if today else {})
    try:
        value = _Evaluator(constants).eval(source, ast.parse(source, mode="eval").body)
    except (NameNotDefined, FunctionNotDefined) as error:
        raise NotCalculable(f"{error}; there are {', '.join(sorted({*_FUNCTIONS, *constants}))}.") from None
    except (InvalidExpression, SyntaxError, MemoryError, RecursionError, KeyError):
        raise NotCalculable(f"{excerpt} is not arithmetic, or has too many parts.") from None
    except (ArithmeticError, ValueError, TypeError, AttributeError) as error:  # what Python's own arithmetic objects to
        raise NotCalculable(f"{excerpt} has no value: {error}") from None
    if isinstance(value, list | str):
        raise NotCalculable(f"{excerpt} is a {'list' if isinstance(value, list) else 'text'}, not a value.")
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
        parts = {part: self.nodes[part] for part in _PARTS} | {ast.Constant: lambda node: node.value}
        parts |= dict.fromkeys((ast.List, ast.Tuple), lambda node: [self._eval(each) for each in node.elts])
        self.nodes = {part: self._within_bounds(evaluate) for part, evaluate in parts.items()}
        self._depth = 0

    def _within_bounds(self, evaluate: Callable[..., Value]) -> Callable[..., Value]:
        def evaluated(node: ast.AST) -> Value:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise RecursionError
            value = evaluate(node)
            self._depth -= 1
            for each in value if isinstance(value, list) else [value]:
                if not (isinstance(each, date | str | list) or (isinstance(each, _NUMBER) and _is_small(each))):
                    raise NotCalculable(f"A {type(each).__name__} in it is too large, or not supported in arithmetic.")
            return value

        return evaluated


_NUMBER = (int, float)


def _is_small(value: float) -> bool:
    return abs(value) <= MAX_INTEGER if isinstance(value, int) else math.isfinite(value)


def _of_numbers(function: Callable[..., Value]) -> Callable[..., Value]:
    """Restrict an operator to numbers: texts and lists would be repeated or formatted."""

    def applied(*values: Value) -> Value:
        if any(not isinstance(value, _NUMBER) for value in values):
            raise TypeError("an operator takes numbers")
        return function(*values)

    return applied


def _of_dates(function: Callable[..., Value]) -> Callable[..., Value]:
    """Restrict + or - to numbers, to a date and a number of days, and to two dates, of which - gives the days."""

    def applied(left: Value, right: Value) -> Value:
        if isinstance(left, date) and isinstance(right, int):
            return function(left, timedelta(days=right))
        if isinstance(left, date) and isinstance(right, date):
            return function(left, right).days
        return _of_numbers(function)(left, right)

    return applied


def _of_many(function: Callable[[list[Value]], Value]) -> Callable[..., Value]:
    """Let a function of a list of numbers or dates also take them one by one."""

    def applied(*values: Value) -> Value:
        operands = values[0] if len(values) == 1 and isinstance(values[0], list) else list(values)
        if any(not isinstance(each, (*_NUMBER, date)) for each in operands):
            raise TypeError("a function of a list takes numbers or dates")
        return function(operands)

    return applied


@_of_numbers
def _power(base: float, exponent: float) -> Value:
    """Return a power, unless computing it would already exceed the limits."""
    if abs(base) > 1 and math.log10(abs(base)) * exponent > math.log10(MAX_INTEGER):
        raise NotCalculable("A power in it is too large.")
    return base**exponent


@_of_numbers
def _round(value: float, decimals: int = 0) -> float:
    if not isinstance(decimals, int) or abs(decimals) > MAX_DECIMALS:
        raise NotCalculable(f"Numbers are rounded to at most {MAX_DECIMALS} decimals.")
    return round(value, decimals) if decimals else round(value)


def _years(earlier: date, later: date) -> int:
    """Return whole years between two dates, as ages are counted."""
    return later.year - earlier.year - ((later.month, later.day) < (earlier.month, earlier.day))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: _of_numbers(getattr(math, name)) for name in ("ceil", "exp", "floor", "log", "log10", "sqrt")},
    **{function.__name__: _of_numbers(function) for function in (abs, float, int)},
    **{function.__name__: _of_many(function) for function in (len, max, min)},
    "change": _of_numbers(lambda before, after: (after - before) / before * 100),
    "date": lambda *parts: date.fromisoformat(*parts) if len(parts) == 1 else date(*parts),
    "days": lambda earlier, later: (later - earlier).days,
    "mean": _of_many(statistics.fmean),
    "median": _of_many(statistics.median),
    "month": lambda day: day.month,
    "percent": _of_numbers(lambda part, whole: part / whole * 100),
    "pow": _power,
    "round": _round,
    "stdev": _of_many(statistics.stdev),
    "sum": _of_many(sum),
    "year": lambda day: day.year,
    "years": _years,
}

_OPERATORS: dict[type, Callable[..., Value]] = {
    ast.Add: _of_dates(operator.add),
    ast.Sub: _of_dates(operator.sub),
    ast.Mult: _of_numbers(operator.mul),
    ast.Div: _of_numbers(operator.truediv),
    ast.FloorDiv: _of_numbers(operator.floordiv),
    ast.Mod: _of_numbers(operator.mod),
    ast.Pow: _power,
    ast.USub: _of_numbers(operator.neg),
    ast.UAdd: _of_numbers(operator.pos),
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
