"""Every regular expression of the package takes time in proportion to the text that it searches."""

import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from inspect import getsource
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from linear_time import LARGE, takes_linear_time

import sleuth
from sleuth.agents.formatting import Turn
from sleuth.graphs.chat.references import refers_back, resolve_references
from sleuth.graphs.chat.small_talk import is_answered_by_rule
from sleuth.graphs.evidence.comparison import read_comparison
from sleuth.graphs.evidence.outcomes import stated_answer

CUT = {
    "sleuth.graphs.chat.small_talk._WHOLE",
    "sleuth.graphs.evidence.comparison._NAMES",
    "sleuth.graphs.evidence.outcomes._ASKS_YES_OR_NO",
    "sleuth.tools.documents.chunking._HEADINGS_AT_END",
}
"""Patterns whose text is cut to some hundred characters before."""
COMMON = (" ", "a", "A", "1", "a ", "A ", "\n", "\n ", ", ", "- ", "\t", "# ", "|", "<a ", "((", "a.", ".", '"')
FAST = 0.005
"""Seconds; in quadratic time, a quarter of the large text takes ten times as long."""
REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
OF_CATEGORY = {kinds.CATEGORY_DIGIT: "1", kinds.CATEGORY_SPACE: " ", kinds.CATEGORY_NOT_WORD: "-"}


def patterns() -> Iterator[Any]:
    """Yield each compiled pattern at the top of a module, with its name and whether texts are searched for it."""
    names = [module.name for module in pkgutil.walk_packages(sleuth.__path__, "sleuth.")]
    modules = [import_module(name) for name in names if not name.endswith("__main__")]
    sources = {module.__name__: getsource(module) for module in modules}
    everything = "".join(sources.values())
    for module in modules:
        for name, value in vars(module).items():
            place, source = f"{module.__name__}.{name}", sources[module.__name__]
            if isinstance(value, re.Pattern) and f"{name} = re.compile" in source and place not in CUT:
                uses = set(re.findall(rf"\b{name}\.(\w+)\(", source if name.startswith("_") else everything))
                yield pytest.param(value, not uses <= {"match", "fullmatch"} or not uses, id=place)


def branches(kind: object, about: Any) -> Sequence[Any]:
    """Return the alternatives inside a part of a pattern."""
    if kind in (kinds.BRANCH, kinds.ASSERT, kinds.ASSERT_NOT):
        return about[1] if kind is kinds.BRANCH else [about[1]]  # type: ignore[no-any-return]
    return [about[-1]] if kind in (kinds.SUBPATTERN, *REPEATS) else [about] if kind is kinds.ATOMIC_GROUP else []


def parts(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield what may repeat in a match, after an example of what precedes it."""
    before = ""
    for kind, about in tree:
        for inside in branches(kind, about):
            yield from ((before + start, part) for start, part in parts(inside))
            if kind in REPEATS:
                yield before, example(inside)
                yield "", before + example(inside)
        before += example([(kind, about)])


def example(tree: Any) -> str:
    """Return a text that a part of a pattern matches, more or less."""
    text = ""
    for kind, about in tree:
        if kind is kinds.LITERAL:
            text += chr(about)
        elif kind is kinds.IN and about[0][0] is not kinds.NEGATE:
            of, value = about[0]
            text += (
                OF_CATEGORY.get(value, "a") if of is kinds.CATEGORY else chr(max(value) if of is kinds.RANGE else value)
            )
        elif kind in (kinds.IN, kinds.NOT_LITERAL, kinds.ANY):
            text += "a"
        elif kind not in (kinds.ASSERT, kinds.ASSERT_NOT):
            times = max(1, min(about[0], 3)) if kind in REPEATS else 1
            text += "".join(map(example, branches(kind, about)[:1])) * times
    return text


@pytest.mark.parametrize(("pattern", "is_searched"), patterns())
def test_pattern_takes_linear_time(pattern: re.Pattern[Any], is_searched: bool) -> None:
    is_bytes = isinstance(pattern.pattern, bytes)
    found = parts(parser.parse(pattern.pattern, pattern.flags))
    for before, part in sorted({*found, *(("", each) for each in COMMON)}):

        def work(size: int, before: str = before, part: str = part) -> None:
            text: Any = f"{before}{part * (size // max(1, len(part)))}\x00"
            text = text.encode(errors="replace") if is_bytes else text
            for _ in pattern.finditer(text) if is_searched else [pattern.fullmatch(text), pattern.match(text)]:
                pass

        began = time.thread_time()
        work(LARGE // 4)
        assert time.thread_time() - began < FAST or takes_linear_time(work), (before, part)


@pytest.mark.parametrize("part", ["\t", "a ", "Anna, ", "or A ", "he is it ", "who the the ", "when was A or B, "])
@pytest.mark.parametrize(
    "rule",
    [
        read_comparison,
        refers_back,
        is_answered_by_rule,
        lambda question: stated_answer("Yes", question),
        lambda question: resolve_references(question, (Turn(speaker="user", text="Who is A?"),)),
    ],
)
def test_rule_over_a_long_question_takes_linear_time(rule: Callable[[str], object], part: str) -> None:
    assert takes_linear_time(lambda size: rule(f"Which was first, {part * (size // len(part))}"))


def test_rule_reads_the_beginning_of_a_long_question() -> None:
    asked = f"When was he born? {'x' * 600} he"
    turns = (Turn(speaker="user", text="Who built the mill?"), Turn(speaker="assistant", text="Jon Rell"))
    assert resolve_references(asked, turns) == asked.replace("he born", "Jon Rell born")
