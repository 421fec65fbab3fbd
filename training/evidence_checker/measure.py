"""Metrics of a reader on held-out items: answers, answerability, statements, calibration."""

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from sleuth.studio.evaluation.scoring import Interval, exact_match, f1, interval
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.evidence_checker.checker import Reading, Support
from training.evidence_checker.examples import KINDS, RELATIONS, Example, negative, one_missing, plain
from training.evidence_checker.sources import MULTI_HOP, Item

Floats = NDArray[np.float64]

RESAMPLES = 1000
"""Bootstrap resamples of an area."""

NEGATIVES = ("sentence removed", "another passage", "question altered")
TENTHS = 10

Labels = NDArray[np.bool_]


class Area(TypedDict):
    """Area under the ROC curve with its bootstrap interval over examples; None if there is only one class."""

    auc: float | None
    low: float | None
    high: float | None
    positive: int
    negative: int


def first_of_each(examples: Sequence[Example], most: int) -> list[Example]:
    """Return the first examples of each set and composition."""
    by_kind: dict[tuple[str, str], list[Example]] = defaultdict(list)
    for example in examples:
        by_kind[example.set, example.made].append(example)
    return [example for own in by_kind.values() for example in own[:most]]


def held_out(items: Sequence[Item], *, seed: int = 0) -> list[Example]:
    """Return the items as they are, and a negative of a random kind for each that has one.

    Multi-hop questions are also among their distractors without one of their passages.
    So about half of the questions are answerable, as the calibration assumes.
    """
    dice = Random(seed)  # noqa: S311 - repeatable by design
    found = [plain(item) for item in items]
    for item in items:
        if item.kind != "none" and item.set not in MULTI_HOP:
            kinds = dice.sample(NEGATIVES, len(NEGATIVES))
            found += [made for kind in kinds if (made := negative(item, kind, dice))][:1]
    missing = [one_missing(item, dice, others=8) for item in items if item.set in MULTI_HOP and len(item.gold) > 1]
    return found + [example for example in missing if example.answerable == 0]


def measure(reader: EvidenceChecker, examples: Sequence[Example], *, seed: int = 0) -> dict[str, Any]:
    """Return all metrics of the examples, by set."""
    questions = [example for example in examples if example.relation < 0]
    statements = [example for example in examples if example.relation >= 0]
    readings = reader.read_batch([(example.text, example.passages) for example in questions])
    supports = reader.check_batch([(example.text, example.passages) for example in statements])
    return {
        "answers": _answers(questions, readings, seed),
        "passages": _passages(questions, readings, seed),
        "answerable": _answerability(questions, readings, seed),
        "yes_or_no": _yes_or_no(questions, readings, seed),
        "statements": _statements(statements, supports, seed),
        "calibration": calibration(questions, readings, statements, supports),
    }


def _answers(examples: Sequence[Example], readings: Sequence[Reading], seed: int) -> dict[str, dict[str, Interval]]:
    """Return exact match and F1 of the best answer on questions that are not unanswerable, whatever the reading's
    answerability.
    """
    own: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for example, reading in zip(examples, readings, strict=True):
        wanted = expected_answers(example)
        if wanted and example.answerable != 0 and example.set != "boolq":
            own[example.set].append((exact_match(reading.answer, wanted), f1(reading.answer, wanted)))
    return {
        name: {metric: interval([each[at] for each in scores], seed=seed) for at, metric in enumerate(("em", "f1"))}
        for name, scores in sorted(own.items())
    }


def expected_answers(example: Example) -> tuple[str, ...]:
    """Return the right answers to a question; none if they are not known."""
    return example.answers or tuple(word for word in ("yes", "no") if example.kind == KINDS[word])


def _passages(examples: Sequence[Example], readings: Sequence[Reading], seed: int) -> dict[str, Interval]:
    """Return the share of a multi-hop question's gold passages among the most relevant ones, as many as are gold."""
    own: dict[str, list[float]] = defaultdict(list)
    for example, reading in zip(examples, readings, strict=True):
        if example.set in MULTI_HOP and example.answerable == 1:
            order = np.argsort(-np.asarray(reading.relevance), kind="stable")[: sum(example.relevant)]
            own[example.set].append(sum(example.relevant[at] for at in order) / sum(example.relevant))
    return {name: interval(shares, seed=seed) for name, shares in sorted(own.items())}


def _answerability(examples: Sequence[Example], readings: Sequence[Reading], seed: int) -> dict[str, Area]:
    """Return how well `answerable` separates the answerable questions of a set from each kind of negative of it."""
    positive: dict[str, list[float]] = defaultdict(list)
    other: dict[tuple[str, str], list[float]] = defaultdict(list)
    for example, reading in zip(examples, readings, strict=True):
        if example.answerable == 1:
            positive[example.set].append(reading.answerable)
        else:
            other[example.set, example.made].append(reading.answerable)
    return {
        f"{name}: {made}": area(positive[name], chances, seed=seed) for (name, made), chances in sorted(other.items())
    }


def area(positive: Sequence[float], other: Sequence[float], *, seed: int) -> Area:
    """Return the area under the curve; its interval resamples both classes."""
    from scipy.stats import mannwhitneyu

    found = Area(auc=None, low=None, high=None, positive=len(positive), negative=len(other))
    if positive and other:
        low, high = area_interval(np.asarray(positive), np.asarray(other), seed)
        found["auc"] = round(float(mannwhitneyu(positive, other).statistic) / (len(positive) * len(other)), 4)
        found["low"], found["high"] = round(low, 4), round(high, 4)
    return found


def area_interval(positive: Floats, negative: Floats, seed: int) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the area, with as many of each class in each resample."""
    from scipy.stats import mannwhitneyu

    drawn = np.random.default_rng(seed)
    above, below = (drawn.choice(side, (RESAMPLES, side.size)) for side in (positive, negative))
    areas = mannwhitneyu(above, below, axis=1, method="asymptotic").statistic / (above.shape[1] * below.shape[1])
    low, high = np.percentile(areas, [2.5, 97.5])
    return float(low), float(high)


def _yes_or_no(examples: Sequence[Example], readings: Sequence[Reading], seed: int) -> dict[str, dict[str, Any]]:
    """Return the share of yes-or-no questions whose likelier of the two is right, and the area under the curve."""
    own: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for example, reading in zip(examples, readings, strict=True):
        if example.kind > KINDS["span"]:
            own[example.set].append((example.kind == KINDS["yes"], reading.yes / (reading.yes + reading.no)))
    return {
        name: {
            "right": interval([float((chance > 0.5) == yes) for yes, chance in rows], seed=seed),
            **area([chance for yes, chance in rows if yes], [chance for yes, chance in rows if not yes], seed=seed),
        }
        for name, rows in sorted(own.items())
    }


def _statements(examples: Sequence[Example], supports: Sequence[Support], seed: int) -> dict[str, Any]:
    """Return the share of right relations by set and by relation, and areas of one relation against the others."""
    table = np.array([probabilities(support) for support in supports]).reshape(-1, 3)
    labels = np.array([example.relation for example in examples], dtype=np.int64)
    right = table.argmax(1) == labels if len(table) else np.zeros(0, dtype=bool)
    groups: dict[str, list[float]] = defaultdict(list)
    for example, good in zip(examples, right, strict=True):
        relation = next(name for name, at in RELATIONS.items() if at == example.relation)
        for name in ("all", example.set, relation):
            groups[name].append(float(good))
    return {
        "right": {name: interval(values, seed=seed) for name, values in sorted(groups.items())},
        "auc": {
            name: area(table[labels == at, at].tolist(), table[labels != at, at].tolist(), seed=seed)
            for name, at in RELATIONS.items()
        },
    }


def probabilities(support: Support) -> tuple[float, float, float]:
    """Return the probabilities in the order of RELATIONS."""
    return support.supported, support.contradicted, support.not_mentioned


def calibration(
    questions: Sequence[Example],
    readings: Sequence[Reading],
    statements: Sequence[Example],
    supports: Sequence[Support],
) -> dict[str, Any]:
    """Return reliability tables of `answerable` on each set, and of the likeliest relation."""
    found: dict[str, Any] = {}
    for name in sorted({example.set for example in questions}):
        rows = [
            (reading.answerable, example.answerable == 1)
            for example, reading in zip(questions, readings, strict=True)
            if example.set == name and example.answerable >= 0
        ]
        found[f"answerable: {name}"] = reliability(rows)
    likeliest = [
        (max(probabilities(support)), int(np.argmax(probabilities(support))) == example.relation)
        for example, support in zip(statements, supports, strict=True)
    ]
    return {**found, "relation": reliability(likeliest)}


def reliability(rows: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Return the frequency of right in each tenth of the probability, and the expected calibration error.

    The error is the mean difference of the two over the tenths, weighted by their examples (Naeini et al., 2015).
    """
    chances = np.array([chance for chance, _ in rows], dtype=np.float64)
    right = np.array([good for _, good in rows], dtype=np.float64)
    tenth = np.minimum((chances * TENTHS).astype(int), TENTHS - 1)
    lines = [
        {
            "from": at / TENTHS,
            "examples": int((tenth == at).sum()),
            "probability": round(float(chances[tenth == at].mean()), 4),
            "right": round(float(right[tenth == at].mean()), 4),
        }
        for at in range(TENTHS)
        if (tenth == at).any()
    ]
    error = sum(line["examples"] * abs(line["probability"] - line["right"]) for line in lines) / max(1, len(rows))
    return {"examples": len(rows), "calibration_error": round(error, 4), "tenths": lines}
