"""From a number per question to tables: means with intervals, in all and by group, and paired differences."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from typing_extensions import TypedDict

from sleuth.studio.evaluation.data import GoldQuestion, System
from sleuth.studio.evaluation.scoring.results import Result
from sleuth.studio.evaluation.scoring.statistics import Difference, Interval, Scores, SystemScores, difference, interval

Line = dict[str, Interval]
By = Literal["set", "type", "hops"]
GROUPINGS: tuple[By, ...] = ("set", "type", "hops")


class Group(TypedDict):
    """The systems' means over some of the questions."""

    questions: int
    systems: dict[str, Line]


class Summary(TypedDict):
    """Means and differences of the systems; `by` omits a grouping with a single group."""

    all: Group
    by: dict[str, dict[str, Group]]
    differences: list[Difference]


def summarise(
    scores: Scores, questions: Sequence[GoldQuestion], metrics: Sequence[str], *, compared: Sequence[str], seed: int
) -> Summary:
    """Return means of every metric, and differences of the `compared` metrics between all pairs of systems."""
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


def _values(own: SystemScores, questions: Sequence[GoldQuestion], metric: str) -> list[float]:
    found = (own[question.key].get(metric) for question in questions if question.key in own)
    return [value for value in found if value is not None]


def _pairs(scores: Scores, a: str, b: str, metric: str, questions: Sequence[GoldQuestion]) -> list[tuple[float, float]]:
    keys = [question.key for question in questions if question.key in scores[a] and question.key in scores[b]]
    both = [(scores[a][key].get(metric), scores[b][key].get(metric)) for key in keys]
    return [(first, second) for first, second in both if first is not None and second is not None]


QUALITY = ("f1", "em", "contained", "rouge_l", "acc_lm", "crag", "refused")
EVIDENCE = (
    *("answered_em", "answered_f1", "support", "citation_precision", "citation_recall"),
    *("quoted", "shown", "all_shown"),
)
COST = ("calls", "tokens", "prompt_tokens", "cached_tokens", "completion_tokens", "model_seconds", "seconds")
METRICS = (*QUALITY, *EVIDENCE, *COST)
COMPARED = ("f1", "em", "tokens")

FAILURES = 5
"""Of each system, to read."""


class NodeMeans(TypedDict):
    """Mean cost of a node per question."""

    calls: float
    prompt_tokens: float
    completion_tokens: float
    model_seconds: float


class Failure(TypedDict):
    """A question that was answered wrongly or not at all, and how to look into its run."""

    system: str
    question: str
    asked: str
    expected: list[str]
    status: str
    said: str
    gold_shown: str
    thread: str
    problem: str


class MethodsResult(TypedDict):
    """All measurements of methods; `ended` is the reason for an early end, `failed` the number of failed runs."""

    systems: list[dict[str, Any]]
    runs: int
    failed: int
    unfinished: int
    ended: str
    summary: Summary
    nodes: dict[str, dict[str, NodeMeans]]
    failures: list[Failure]


def methods_result(
    systems: Sequence[System], questions: Sequence[GoldQuestion], results: Iterable[Result], *, ended: str, seed: int
) -> MethodsResult:
    """Score the results; where runs are missing, only questions that every system has ended count."""
    by_place = {(result["system"], result["question"]): result for result in results}
    whole = [each for each in questions if all((system.name, each.key) in by_place for system in systems)]
    kept = {
        system.name: {question.key: by_place[system.name, question.key] for question in whole} for system in systems
    }
    table: Scores = {
        name: {question.key: own[question.key]["scores"] for question in whole} for name, own in kept.items()
    }
    return MethodsResult(
        systems=[system.record() for system in systems],
        runs=len(by_place),
        failed=sum(result["status"] == "failed" for result in by_place.values()),
        unfinished=len(systems) * len(questions) - len(by_place),
        ended=ended,
        summary=summarise(table, whole, METRICS, compared=COMPARED, seed=seed),
        nodes={name: node_means(own.values()) for name, own in kept.items()},
        failures=[failure for name, own in kept.items() for failure in _failures(name, own, table[name], whole)],
    )


def node_means(results: Iterable[Result]) -> dict[str, NodeMeans]:
    """Return cost by node, in the mean over the runs that have ended well."""
    ended = [result for result in results if result["status"] != "failed"]
    names = list(dict.fromkeys(name for result in ended for name in result["cost"]["nodes"]))
    means = {name: NodeMeans(calls=0, prompt_tokens=0, completion_tokens=0, model_seconds=0) for name in names}
    for result in ended:
        for name, cost in result["cost"]["nodes"].items():
            means[name]["calls"] += cost["calls"] / len(ended)
            means[name]["prompt_tokens"] += cost["prompt_tokens"] / len(ended)
            means[name]["completion_tokens"] += cost["completion_tokens"] / len(ended)
            means[name]["model_seconds"] += cost["model_seconds"] / len(ended)
    return means


def _failures(
    name: str,
    own: Mapping[str, Result],
    table: Mapping[str, Mapping[str, float | None]],
    questions: Sequence[GoldQuestion],
) -> list[Failure]:
    """Return the worst first: failed runs, then wrong answers although all gold was shown, then the others."""
    wrong = [each for each in questions if each.answers and not table[each.key].get("em")]
    worst = sorted(wrong, key=lambda each: _order(own[each.key], table[each.key]))
    return [_failure(name, own[each.key], each) for each in worst[:FAILURES]]


def _order(result: Result, line: Mapping[str, float | None]) -> tuple[bool, float, float]:
    return (result["status"] != "failed", -(line.get("shown") or 0), line.get("f1") or 0)


def _failure(name: str, result: Result, question: GoldQuestion) -> Failure:
    return Failure(
        system=name,
        question=question.key,
        asked=question.question,
        expected=list(question.answers),
        status=result["status"],
        said=result["text"],
        gold_shown=f"{len(result['shown'])} of {len(question.gold)}" if question.gold else "–",
        thread=result["thread"],
        problem=result["problem"],
    )
