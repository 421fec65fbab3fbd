"""From a number per question to tables: means with intervals, in all and by group, and paired differences."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

from typing_extensions import TypedDict

from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.scoring.statistics import Difference, Interval, difference, interval

Own = Mapping[str, Mapping[str, float | None]]
"""Of one system: a question's key, a metric, and a number."""

Scores = Mapping[str, Own]
"""System, question's key, metric: a number, or None where the metric says nothing about that question."""

Line = dict[str, Interval]
By = Literal["set", "type", "hops"]
GROUPINGS: tuple[By, ...] = ("set", "type", "hops")


class Group(TypedDict):
    """The systems' means over some of the questions."""

    questions: int
    systems: dict[str, Line]


class Summary(TypedDict):
    """What is known about the systems; `by` leaves out a grouping that has one group only."""

    all: Group
    by: dict[str, dict[str, Group]]
    differences: list[Difference]


def summarise(
    scores: Scores, questions: Sequence[GoldQuestion], metrics: Sequence[str], *, compared: Sequence[str], seed: int
) -> Summary:
    """Means of every metric, and differences of the `compared` metrics between all pairs of systems."""
    by = {name: _split(scores, questions, metrics, name, seed) for name in GROUPINGS}
    return Summary(
        all=_group(scores, questions, metrics, seed),
        by={name: groups for name, groups in by.items() if len(groups) > 1},
        differences=[
            difference(a, b, metric, _pairs(scores, a, b, metric, questions), seed=seed)
            for metric in compared
            for b, a in combinations(scores, 2)
        ],
    )


def _split(
    scores: Scores, questions: Sequence[GoldQuestion], metrics: Sequence[str], by: By, seed: int
) -> dict[str, Group]:
    names = sorted({question.group(by) for question in questions})
    return {
        name: _group(scores, [question for question in questions if question.group(by) == name], metrics, seed)
        for name in names
    }


def _group(scores: Scores, questions: Sequence[GoldQuestion], metrics: Sequence[str], seed: int) -> Group:
    lines = {
        system: {metric: interval(_values(own, questions, metric), seed=seed) for metric in metrics}
        for system, own in scores.items()
    }
    return Group(questions=len(questions), systems=lines)


def _values(own: Own, questions: Sequence[GoldQuestion], metric: str) -> list[float]:
    found = (own[question.key].get(metric) for question in questions if question.key in own)
    return [value for value in found if value is not None]


def _pairs(scores: Scores, a: str, b: str, metric: str, questions: Sequence[GoldQuestion]) -> list[tuple[float, float]]:
    keys = [question.key for question in questions if question.key in scores[a] and question.key in scores[b]]
    both = [(scores[a][key].get(metric), scores[b][key].get(metric)) for key in keys]
    return [(first, second) for first, second in both if first is not None and second is not None]
