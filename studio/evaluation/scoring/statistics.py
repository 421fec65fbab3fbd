"""Uncertainty of results: paired bootstrap intervals, a permutation test, and the required number of questions.

Sampling uses a seed that the report records: the same scores give the same numbers.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from numpy.typing import NDArray

SystemScores = Mapping[str, Mapping[str, float | None]]
"""Scores of one system: question key, then metric."""

Scores = Mapping[str, SystemScores]
"""Scores by system; None where a metric does not apply to a question."""

RESAMPLES = 4_000
SWAPS = 9_999
LEVEL = 0.95

# Normal quantiles for a two-sided test at 5 % that sees a real difference four times in five.
_POWER = 1.960 + 0.842


class Interval(TypedDict):
    """A mean over `n` questions and the bootstrap interval around it; None where there is nothing to average."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


class Difference(TypedDict):
    """Paired difference: mean of a minus b on the same `n` questions, its interval, and a permutation test's p-value.

    `detectable` is the smallest true difference that `n` questions detect with 80 % power; `needed` is the number of
    questions that the observed difference would require.
    """

    a: str
    b: str
    metric: str
    mean: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int
    detectable: float | None
    needed: int | None


def interval(values: Sequence[float], *, seed: int) -> Interval:
    """Return the mean and its percentile bootstrap interval (Efron, 1979).

    Equal numbers of values are resampled identically: intervals of methods on the same questions are paired.
    """
    if not values:
        return Interval(mean=None, low=None, high=None, n=0)
    array = np.asarray(values, dtype=np.float64)
    low, high = _bounds(array, seed)
    return Interval(mean=float(array.mean()), low=low, high=high, n=len(values))


def difference(a: str, b: str, metric: str, pairs: Sequence[tuple[float, float]], *, seed: int) -> Difference:
    """Compare two named systems on the same questions."""
    deltas = np.asarray([first - second for first, second in pairs], dtype=np.float64)
    n = len(deltas)
    found = Difference(
        a=a, b=b, metric=metric, mean=None, low=None, high=None, p=None, n=n, detectable=None, needed=None
    )
    if n == 0:
        return found
    mean, spread = float(deltas.mean()), float(deltas.std(ddof=1)) if n > 1 else 0.0
    found["mean"], (found["low"], found["high"]) = mean, _bounds(deltas, seed)
    found["p"] = _permutation(deltas, seed)
    if spread:
        found["detectable"] = _POWER * spread / math.sqrt(n)
        found["needed"] = math.ceil((_POWER * spread / mean) ** 2) if mean else None
    return found


def _bounds(values: "NDArray[np.float64]", seed: int) -> tuple[float, float]:
    means = _draws(len(values), seed) @ values / len(values)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


@lru_cache(maxsize=16)
def _draws(n: int, seed: int) -> "NDArray[np.float64]":
    """Return the counts of each of n questions in each resample: one row per resample."""
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)


def _permutation(deltas: "NDArray[np.float64]", seed: int) -> float:
    """Return the two-sided p-value of swapping the systems question by question.

    It is exact if all swaps can be enumerated; otherwise the observed difference counts as one of the draws.
    """
    signs = _signs(len(deltas), seed)
    found = abs(deltas.sum()) * (1 - 1e-12)
    extreme = int((np.abs(signs @ deltas) >= found).sum())
    exact = len(signs) != SWAPS
    return extreme / len(signs) if exact else (extreme + 1) / (len(signs) + 1)


@lru_cache(maxsize=4)
def _signs(n: int, seed: int) -> "NDArray[np.float64]":
    """Return ways of swapping n pairs, one per row: all of them, or SWAPS random ones."""
    if 2**n < SWAPS:
        swapped = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return np.where(swapped, -1.0, 1.0)
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(SWAPS, n))
