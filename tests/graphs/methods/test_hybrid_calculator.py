"""Arithmetic is worked out as Python would; everything else is refused before it can take time or memory."""

import math
import tracemalloc
from datetime import date

import pytest
from hostile_expressions import HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from sleuth.graphs.methods.hybrid_rag.calculator import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_INTEGER,
    NotCalculable,
    calculate,
    names,
)

TODAY = date(2024, 3, 1)

HONEST: dict[str, object] = {
    # Numbers
    "1": 1, "-1": -1, "+1": 1, "007.5": 7.5, "1_000": 1000, "1e3": 1000.0, ".5": 0.5, "0x10": 16, "1+1": 2, "5-7": -2,
    "6*7": 42, "7/2": 3.5, "7//2": 3, "-7//2": -4, "7%3": 1, "-7%3": 2, "2**10": 1024, "2**-1": 0.5, "4**0.5": 2.0,
    "2**3**2": 512, "(2**3)**2": 64, "1+2*3": 7, "(1+2)*3": 9, "1-2-3": -4, "8/4/2": 1.0, "-2**2": -4, "--3": 3,
    "10**60": 10**60, "2**199": 2**199, "100 × 2": 200, "9 ÷ 3": 3.0, "5 − 3": 2, "  1 + 1  ": 2, "1e-400": 0.0,
    "0*-1": 0, "10.0**60": 10.0**60, "7**0": 1, "round(1000*(1+0.05/365)**3650, 2)": 1648.66,
    # Comparisons and choices
    "1<2": True, "2<=2": True, "3>4": False, "3>=4": False, "1==1.0": True, "1!=1": False, "1<2<3": True,
    "1<3<2": False, "not 1": False, "1 and 2": 2, "0 or 3": 3, "3 if 2>1 else 4": 3, "3 if 1>2 else 4": 4,
    "True": True, "False + 1": 1,
    # Functions of numbers
    "abs(-3)": 3, "ceil(1.2)": 2, "floor(-1.2)": -2, "round(2.5)": 2, "round(3.14159, 2)": 3.14,
    "round(1234, -2)": 1200, "sqrt(16)": 4.0, "exp(0)": 1.0, "log(e)": 1.0, "log(8, 2)": 3.0, "log10(1000)": 3.0,
    "int(3.9)": 3, "int(-3.9)": -3, "float(3)": 3.0, "pow(2, 5)": 32, "pow(2, 0.5)": math.sqrt(2), "pi": math.pi,
    "2*pi*3": 6 * math.pi,
    # Percentages
    "percent(12, 48)": 25.0, "percent(1, 3)": 100 / 3, "change(80, 100)": 25.0, "change(100, 80)": -20.0,
    "(120-100)/100*100": 20.0, "round(percent(812, 4478), 1)": 18.1,
    # Lists
    "sum([1,2,3])": 6, "sum(1,2,3)": 6, "sum([])": 0, "len([4,5,6])": 3, "sum([1,2,3])/len([1,2,3])": 2.0,
    "mean([1,2,4])": 7 / 3, "mean(1,2)": 1.5, "median([3,1,2])": 2, "median(1,2,3,4)": 2.5, "max([3,9,2])": 9,
    "max(3, 9.5)": 9.5, "min([3,9,2])": 2, "min(4, -1, 2)": -1, "max([1,2])": 2, "stdev([2,4])": math.sqrt(2),
    "max([1,2]) - min([1,2])": 1, "len([])": 0, "sum([0.5])": 0.5, "max(5)": 5,
    # Dates
    "date('2024-02-29')": date(2024, 2, 29), "date(2024, 2, 29)": date(2024, 2, 29), "today": TODAY,
    "today + 1": date(2024, 3, 2), "today - 1": date(2024, 2, 29), "today - date(2024,1,1)": 60,
    "date('2024-03-01') - date('2023-03-01')": 366, "days(date('2024-01-01'), today)": 60,
    "years(date(1990, 3, 1), today)": 34, "years(date(1990, 3, 2), today)": 33, "year(today)": 2024,
    "month(today)": 3, "year(today) - 1848": 176, "max(date(2020,1,1), date(2021,1,1))": date(2021, 1, 1),
    "min([date(2020,1,1), date(2021,1,1)])": date(2020, 1, 1), "date(2020,1,1) < date(2021,1,1)": True,
    "date(2020,1,1) == date(2020,1,1)": True, "today if 1 < 2 else date(1,1,1)": TODAY, "days(today, today)": 0,
    "(date('1969-07-20') - date('1961-04-12')) / 7": 3021 / 7,
}  # fmt: skip


def test_honest_arithmetic_is_right() -> None:
    for expression, expected in HONEST.items():
        value = calculate(expression, today=TODAY).value
        assert value == (pytest.approx(expected) if isinstance(expected, float) else expected), expression
        assert type(value) is type(expected), expression


@pytest.mark.timeout(60)  # all of them together take milliseconds
def test_everything_else_is_refused() -> None:
    tracemalloc.start()
    for expression in HOSTILE:
        with pytest.raises(NotCalculable) as refused:
            pytest.fail(f"{expression} is {calculate(expression, today=TODAY).value}")
        assert len(str(refused.value)) < 400
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


@pytest.mark.parametrize(("before", "depth"), [("", 1), ("2+1*", 3), ("2*3-", 2)])
def test_parts_are_nested_up_to_the_limit(before: str, depth: int) -> None:
    signs = "-" * (MAX_DEPTH - depth)
    assert calculate(f"{before}{signs}1").value
    with pytest.raises(NotCalculable, match="too many parts"):
        calculate(f"{before}-{signs}1")


WRITTEN = {
    "0.1+0.2": "0.3", "2/3": "0.6666666667", "10/2": "5", "1e20": "1e+20", "1/1e20": "1e-20", "1<2": "yes", "1>2": "no",
    "date(2024,2,29)": "2024-02-29", "10**20": "100000000000000000000", "123456789.125": "123456789.1",
}  # fmt: skip


def test_values_are_written_as_people_do() -> None:
    assert {expression: calculate(expression).text for expression in WRITTEN} == WRITTEN


MISTAKES = {
    "average(1, 2)": r"'average' not defined.*; there are abs, .*mean",
    "1,234": "is a list, not a value",
    "today": "'today' is not defined",
}


def test_a_mistake_is_explained() -> None:
    for expression, reason in MISTAKES.items():
        with pytest.raises(NotCalculable, match=reason):
            calculate(expression)


SYMBOLS = "( ) [ ] , + - * ** / // % < == . : = { } lambda for in if else and not f @ ; 'a' '2024-01-01' 1 0 -1 9 1e308"
TOKENS = st.sampled_from([*names(), *SYMBOLS.split(), "pi", "today", "x", "_", "__class__", " if ", " else ", "\n"])
LEAVES = st.sampled_from(["0", "1", "2.5", "-3", "1e300", "10**50", "today", "pi", "'2024-01-01'", "[1, 2]", "[]"])


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "<", "==", " and ", " or "])
    arguments = st.lists(parts, max_size=3)
    calls = st.builds(lambda name, given: f"{name}({', '.join(given)})", st.sampled_from(names()), arguments)
    pairs = st.builds(lambda left, between, right: f"({left}{between}{right})", parts, operators, parts)
    return st.one_of(calls, pairs, st.lists(parts, max_size=4).map(lambda each: f"[{', '.join(each)}]"))


EXPRESSIONS = {
    "text": st.text(max_size=MAX_CHARACTERS + 10),
    "tokens": st.lists(TOKENS, max_size=40).map("".join),
    "well formed": st.recursive(LEAVES, joined, max_leaves=25),
}


@pytest.mark.parametrize("kind", EXPRESSIONS)
@given(data=st.data())
def test_any_expression_has_a_value_or_is_refused(kind: str, data: st.DataObject) -> None:
    try:
        found = calculate(data.draw(EXPRESSIONS[kind]), today=TODAY)
    except NotCalculable:
        return
    assert isinstance(found.value, int | float | date)
    assert isinstance(found.value, date) or (math.isfinite(found.value) and abs(found.value) <= max(MAX_INTEGER, 2e308))
    assert len(found.text) < 100
