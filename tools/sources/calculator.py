"""Safe evaluation of arithmetic written by a model: numbers, lists of numbers and dates.

An expression is Python syntax restricted to a whitelist, evaluated by simpleeval. It cannot loop, access attributes or
build text, and every intermediate value is bounded, so its length bounds its time and memory.
"""

import ast
import math
import operator
import re
import statistics
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from simpleeval import EvalWithCompoundTypes, InvalidExpression

from sleuth.tools.errors import SleuthError

MAX_CHARACTERS = 500
MAX_PARTS = 300
MAX_DEPTH = 40
MAX_INTEGER = 10**60
MAX_DECIMALS = 20
MAX_TEXT = 20
"""Characters of a date."""

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
    constants = {"pi": math.pi, "e": math.e} | ({"today": today} if today else {})
    tree = _checked(source, {*_FUNCTIONS, *constants})
    evaluator = EvalWithCompoundTypes(operators=_OPERATORS, functions=dict(_FUNCTIONS), names=constants)
    try:
        value = _bounded(evaluator.eval(source, previously_parsed=tree))
    except InvalidExpression as error:
        raise NotCalculable(f"{_shown(source)}: {error}") from None
    except (ArithmeticError, ValueError, TypeError) as error:  # what Python's own arithmetic objects to
        raise NotCalculable(f"{_shown(source)} has no value: {error}") from None
    if isinstance(value, list | str):
        raise NotCalculable(f"{_shown(source)} is a {'list' if isinstance(value, list) else 'text'}, not a value.")
    return Calculation(expression=source, value=value, text=_written(value))


def names() -> list[str]:
    """Return the available functions."""
    return sorted(_FUNCTIONS)


# Syntax

_SYNTAX = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Load, ast.Constant, ast.List,
    ast.Tuple, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd, ast.And, ast.Or,
    ast.Not, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip


def _checked(source: str, known: Collection[str]) -> ast.expr:
    """Return the expression's tree, with nothing in it that is not arithmetic."""
    if len(source) > MAX_CHARACTERS:
        raise NotCalculable(f"An expression may have {MAX_CHARACTERS} characters, not {len(source):,}.")
    if not source.isascii() or not source.isprintable() or "\\" in source or _RUN_ON.search(source):
        raise NotCalculable(f"{_shown(source)} contains characters that arithmetic does not use.")
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise NotCalculable(f"{_shown(source)} is not an expression.") from None
    _check_size(tree, source)
    for node in ast.walk(tree):
        # A function is called by its name, with positional arguments.
        odd_call = isinstance(node, ast.Call) and (node.keywords or not isinstance(node.func, ast.Name))
        if odd_call or not isinstance(node, _SYNTAX):
            raise NotCalculable(f"{_shown(source)} is not arithmetic: {type(node).__name__} is not allowed.")
        if isinstance(node, ast.Name) and node.id not in known:
            raise NotCalculable(f"{_shown(source)}: there is no {node.id!r}; there are {', '.join(sorted(known))}.")
        if isinstance(node, ast.Constant):
            _bounded(node.value)
    return tree


def _check_size(tree: ast.expr, source: str) -> None:
    parts, level, depth = 0, [tree], 0
    while level:
        parts, depth = parts + len(level), depth + 1
        if parts > MAX_PARTS or depth > MAX_DEPTH:
            raise NotCalculable(f"{_shown(source)} has too many parts.")
        level = [child for node in level for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


# Values


def _bounded(value: Any) -> Any:  # noqa: ANN401 - any value of an expression
    """Return the value, if it is of a kind and size that is allowed."""
    if isinstance(value, list | tuple):
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


def _numbers(*values: Any) -> None:  # noqa: ANN401 - any value
    for value in values:
        if not isinstance(value, int | float):
            raise NotCalculable(f"It has a {type(value).__name__} where a number should be.")


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Restrict a function to numbers: text and lists would be repeated or formatted."""

    def applied(*values: Any) -> Any:  # noqa: ANN401 - any value
        _numbers(*values)
        return _bounded(function(*values))

    return applied


def _sum_or_later(left: Any, right: Any) -> Any:  # noqa: ANN401 - any value
    if isinstance(left, date) and isinstance(right, int):
        return left + timedelta(days=right)
    return _arithmetic(operator.add)(left, right)


def _difference(left: Any, right: Any) -> Any:  # noqa: ANN401 - any value
    """Return the difference of numbers, or of dates in days."""
    if isinstance(left, date) and isinstance(right, date):
        return (left - right).days
    if isinstance(left, date) and isinstance(right, int):
        return left - timedelta(days=right)
    return _arithmetic(operator.sub)(left, right)


def _power(base: float, exponent: float) -> Any:  # noqa: ANN401 - int or float
    """Return a power, unless computing it would already exceed the limits."""
    _numbers(base, exponent)
    if abs(exponent) > 1000 or (abs(base) > 1 and math.log10(abs(base)) * exponent > math.log10(MAX_INTEGER)):
        raise NotCalculable("A power in it is too large.")
    return _bounded(base**exponent)


# Functions


def _over_list(function: Callable[..., Any], *, or_dates: bool = False) -> Callable[..., Any]:
    """Apply a function to numbers (or to dates) that are given as arguments, or as one list."""

    def applied(*values: Any) -> Any:  # noqa: ANN401 - any value
        given = values[0] if len(values) == 1 and isinstance(values[0], list) else list(values)
        if not (or_dates and all(isinstance(each, date) for each in given)):
            _numbers(*given)
        return _bounded(function(given))

    return applied


def _length(values: Any) -> Any:  # noqa: ANN401 - any value
    return _over_list(len)(values)


def _round(value: float, decimals: int = 0) -> float:
    if not isinstance(decimals, int) or abs(decimals) > MAX_DECIMALS:
        raise NotCalculable(f"Numbers are rounded to at most {MAX_DECIMALS} decimals.")
    return round(value, decimals) if decimals else round(value)


def _date(*parts: Any) -> date:  # noqa: ANN401 - any value
    if len(parts) == 1 and isinstance(parts[0], str):
        return date.fromisoformat(parts[0])
    return date(*parts)


def _of_dates(function: Callable[..., int]) -> Callable[..., int]:
    def applied(*days: Any) -> int:  # noqa: ANN401 - any value
        if not all(isinstance(day, date) for day in days):
            raise NotCalculable('It needs dates, as in date("2024-02-29").')
        return function(*days)

    return applied


def _years(earlier: date, later: date) -> int:
    """Return whole years between two dates, as ages are counted."""
    return later.year - earlier.year - ((later.month, later.day) < (earlier.month, earlier.day))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": _arithmetic(abs),
    "ceil": _arithmetic(math.ceil),
    "change": _arithmetic(lambda before, after: (after - before) / before * 100),
    "date": _date,
    "days": _of_dates(lambda earlier, later: (later - earlier).days),
    "exp": _arithmetic(math.exp),
    "float": _arithmetic(float),
    "floor": _arithmetic(math.floor),
    "int": _arithmetic(int),
    "len": _length,
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

_OPERATORS: dict[type, Callable[..., Any]] = {
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


# Output


def _written(value: float | bool | date) -> str:
    """Return the value as people write it: ten significant digits, without an exponent below 1e15."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | date):
        return str(value)
    rounded = float(f"{value:.10g}")
    return f"{rounded:.0f}" if rounded.is_integer() and abs(rounded) < 1e15 else f"{rounded:.10g}"


def _shown(source: str) -> str:
    return repr(source if len(source) <= 60 else source[:60] + "…")
