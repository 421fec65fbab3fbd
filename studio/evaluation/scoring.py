"""Metrics of answers and citations, and their statistics: means by group, bootstrap intervals, a permutation test.

Every score is a number per question, None if the metric does not apply. A question whose answer is empty has no answer:
refusing it is right. Sampling uses a seed that the report records: the same scores give the same numbers.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from typing_extensions import TypedDict

from sleuth.graphs.core.answer import Support, is_weak
from sleuth.studio.evaluation.data import INVALID, GoldQuestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

REFUSALS = ("refused", "unknown", "invalid_question")

CRAG_WORDS = 50
"""Words of an answer that CRAG's score considers (section 3)."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Return text normalized as by SQuAD's evaluate-v2.0.py: lower case, no ASCII punctuation or English articles."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(reply: str, answers: Sequence[str]) -> float:
    """Return 1 if the normalized answer equals an accepted one."""
    return float(normalize(reply) in _comparable(answers))


def f1(reply: str, answers: Sequence[str]) -> float:
    """Return the harmonic mean of word precision and recall, against the closest accepted answer."""
    return max(_f1(normalize(reply).split(), answer.split()) for answer in _comparable(answers))


def _comparable(answers: Sequence[str]) -> list[str]:
    """Return normalized answers, as in SQuAD's script without those that become empty, unless there is no other."""
    return [normalize(answer) for answer in answers if normalize(answer) or not answer] or [""]


def _f1(reply: list[str], answer: list[str]) -> float:
    if not (reply and answer):  # SQuAD 2.0: an empty answer is right if there is no answer
        return float(reply == answer)
    common = sum((Counter(reply) & Counter(answer)).values())
    return 2 * common / (len(reply) + len(answer))


def contained(reply: str, answers: Sequence[str]) -> float:
    """Return 1 if the text contains an accepted answer, word for word after normalizing (CRP-RAG's exact match)."""
    words = f" {normalize(reply)} "
    return max(float(_within(answer, words)) for answer in _comparable(answers))


def _within(answer: str, words: str) -> bool:
    return f" {answer} " in words if answer else not words.strip()


def first_words(text: str) -> str:
    """Return the part of an answer that CRAG's score considers."""
    return " ".join(text.split()[:CRAG_WORDS])


def answer_scores(
    status: str, text: str, answers: Sequence[str], judged: bool | None = None
) -> dict[str, float | None]:
    """Return all scores of an answer's text.

    CRAG's score is 1 for a right answer, 0 for a refusal or a question taken for invalid, -1 for a wrong answer; only
    the first 50 words count, in place of the benchmark's tokens.

    Args:
        status: the run's; the text of a refusal is not an answer.
        text: the answer.
        answers: accepted answers; without any, only the refusal is scored.
        judged: a judge model's opinion of the first 50 words, if any.
    """
    refused = status in REFUSALS
    scores: dict[str, float | None] = {"refused": float(refused)}
    if not answers:
        return scores
    reply = INVALID if status == "invalid_question" and INVALID in answers else "" if refused else text
    em, overlap = exact_match(reply, answers), f1(reply, answers)
    right = bool(exact_match(first_words(reply), answers)) or bool(judged)
    scores |= {"em": em, "f1": overlap, "contained": contained(reply, answers)}
    scores |= {"answered_em": None if refused else em, "answered_f1": None if refused else overlap}
    scores["crag"] = 1.0 if right else 0.0 if refused else -1.0
    if judged is not None:
        scores["acc_lm"] = float(judged)
    return scores


def citation_scores(
    cited: Sequence[Collection[str]], gold: Sequence[str], *, answered: bool
) -> dict[str, float | None]:
    """Return the scores of citations against the gold passages; None without an answer.

    Args:
        cited: for each cited passage its id and its document's.
        gold: ids of passages or documents.
        answered: whether there is an answer.
    """
    if not (gold and answered):
        return {"support": None, "citation_precision": None, "citation_recall": None}
    right = [bool(set(names) & set(gold)) for names in cited]
    cited_gold = {name for names in cited for name in names} & set(gold)
    return {
        "support": float(any(right)),
        "citation_precision": sum(right) / len(right) if right else None,
        "citation_recall": len(cited_gold) / len(set(gold)),
    }


def color_scores(status: str, support: Support | None, right: float | None) -> dict[str, float | None]:
    """Return whether an answer is green and whether it is amber, and of each whether it is `right`."""
    weak = is_weak(status, support)
    well = status == "answered" and support is not None and not weak
    is_checked = support is not None or status != "answered"
    return {
        "green": float(well) if is_checked else None,
        "green_right": right if well else None,
        "amber": float(weak) if is_checked else None,
        "amber_right": right if weak else None,
    }


def quoted(text: str, quotes: Sequence[str]) -> float | None:
    """Return 1 if a quote contains the answer, word for word after normalizing; None for yes, no or nothing."""
    answer = normalize(text)
    if answer in ("", "yes", "no"):
        return None
    return max((float(_within(answer, f" {normalize(quote)} ")) for quote in quotes), default=0.0)


SystemScores = Mapping[str, Mapping[str, float | None]]
"""Scores of one system: question key, then metric."""

Scores = Mapping[str, SystemScores]
"""Scores by system; None where a metric does not apply to a question."""

RESAMPLES = 4_000
SWAPS = 9_999
LEVEL = 0.95
GROUPINGS: tuple[Literal["set", "type", "hops"], ...] = ("set", "type", "hops")

# Normal quantiles for a two-sided test at 5 % that sees a real difference four times in five.
_POWER = 1.960 + 0.842


class Interval(TypedDict):
    """A mean over `n` questions and the bootstrap interval around it; None where there is nothing to average."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


class Difference(Interval):
    """Paired difference: mean of a minus b on the same `n` questions, and a permutation test's p-value.

    `detectable` is the smallest true difference that `n` questions detect with 80 % power; `needed` is the number of
    questions that the observed difference would require.
    """

    a: str
    b: str
    metric: str
    p: float | None
    detectable: float | None
    needed: int | None


def summarize(
    scores: Scores, questions: Sequence[GoldQuestion], metrics: Sequence[str], *, compared: Sequence[str], seed: int
) -> dict[str, Any]:
    """Return means of every metric, and differences of the `compared` metrics between all pairs of systems.

    `all` has the systems' intervals by metric over all questions, `by` the same over each group of a grouping, without
    groupings that have a single group.
    """

    def means(chosen: Sequence[GoldQuestion]) -> dict[str, Any]:
        lines = {}
        for system, by_question in scores.items():
            rows = [by_question[question.key] for question in chosen if question.key in by_question]
            lines[system] = {
                metric: interval([value for row in rows if (value := row.get(metric)) is not None], seed=seed)
                for metric in metrics
            }
        return {"questions": len(chosen), "systems": lines}

    by: dict[str, dict[str, dict[str, Any]]] = {}
    for grouping in GROUPINGS:
        names = sorted({question.group(grouping) for question in questions})
        if len(names) > 1:
            by[grouping] = {
                name: means([question for question in questions if question.group(grouping) == name]) for name in names
            }
    differences = [
        difference(a, b, metric, paired(scores[a], scores[b], metric), seed=seed)
        for metric in compared
        for b, a in combinations(scores, 2)
    ]
    return {"all": means(questions), "by": by, "differences": differences}


def scores_by(name: str, lines: Iterable[Mapping[str, Any]]) -> dict[str, SystemScores]:
    """Return the scores of stored lines by the system that the field `name` contains, and by question."""
    scores: dict[str, dict[str, Mapping[str, float | None]]] = {}
    for line in lines:
        scores.setdefault(line[name], {})[line["question"]] = line["scores"]
    return {**scores}


def paired(first: SystemScores, second: SystemScores, metric: str) -> list[tuple[float, float]]:
    """Return the two systems' values for every question for which both have one."""
    both = [(scores.get(metric), second[key].get(metric)) for key, scores in first.items() if key in second]
    return [(a, b) for a, b in both if a is not None and b is not None]


def interval(values: Sequence[float], *, seed: int) -> Interval:
    """Return the mean and its percentile bootstrap interval (Efron, 1979).

    Equal numbers of values are resampled identically: intervals of methods on the same questions are paired.
    """
    if not values:
        return Interval(mean=None, low=None, high=None, n=0)
    array = np.asarray(values, dtype=np.float64)
    means = _draws(len(values), seed) @ array / len(values)
    low, high = map(float, np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    return Interval(mean=float(array.mean()), low=low, high=high, n=len(values))


def difference(a: str, b: str, metric: str, pairs: Sequence[tuple[float, float]], *, seed: int) -> Difference:
    """Compare two named systems on the same questions."""
    from scipy.stats import permutation_test

    deltas = [first - second for first, second in pairs]
    n, average = len(deltas), interval(deltas, seed=seed)
    p = 1.0 if n else None
    if n > 1:
        options = {"permutation_type": "samples", "n_resamples": SWAPS, "vectorized": True, "rng": seed}
        p = float(permutation_test((np.asarray(deltas),), np.mean, **options).pvalue)
    needs = _POWER * float(np.std(deltas, ddof=1)) if n > 1 else 0.0
    needed = math.ceil((needs / average["mean"]) ** 2) if needs and average["mean"] else None
    detectable = needs / math.sqrt(n) if needs else None
    return Difference(a=a, b=b, metric=metric, **average, p=p, detectable=detectable, needed=needed)


@lru_cache(maxsize=16)
def _draws(n: int, seed: int) -> "NDArray[np.float64]":
    """Return the counts of each of n questions in each resample: one row per resample."""
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)
