import random

import numpy as np
import pytest

from sleuth.studio.evaluation.scoring import difference, interval


def test_nothing_and_one_value() -> None:
    assert interval([], seed=0) == {"mean": None, "low": None, "high": None, "n": 0}
    assert interval([0.5], seed=0) == {"mean": 0.5, "low": 0.5, "high": 0.5, "n": 1}


@pytest.mark.parametrize(
    "values",
    [
        [float(random.Random(n).random() < 0.8) for n in range(100)],
        [random.Random(n).random() ** 4 for n in range(12)],
        [0.0] * 30 + [1.0] * 2,
    ],
    ids=["shares", "few and skewed", "rare"],
)
def test_an_interval_is_that_of_scipy(values: list[float]) -> None:
    from scipy.stats import bootstrap

    ours = interval(values, seed=3)
    theirs = bootstrap((values,), np.mean, method="percentile", n_resamples=4_000, rng=np.random.default_rng(3))
    assert ours["mean"] == pytest.approx(np.mean(values))
    assert ours["low"] == pytest.approx(theirs.confidence_interval.low, abs=0.02)
    assert ours["high"] == pytest.approx(theirs.confidence_interval.high, abs=0.02)


def test_the_same_seed_gives_the_same_numbers() -> None:
    pairs = [(float(n % 3 == 0), float(n % 5 == 0)) for n in range(40)]
    first, same, other = (difference("a", "b", "em", pairs, seed=seed) for seed in (1, 1, 2))
    assert first == same != other


def test_differences_without_spread_or_pairs() -> None:
    found = difference("a", "b", "em", [(1.0, 0.0)] * 6, seed=0)
    assert (found["mean"], found["low"], found["high"], found["detectable"]) == (1.0, 1.0, 1.0, None)
    assert found["p"] == pytest.approx(2 / 2**6)
    found = difference("a", "b", "em", [(0.5, 0.5)] * 9, seed=0)
    assert (found["mean"], found["p"], found["needed"]) == (0.0, 1.0, None)
    assert difference("a", "b", "em", [], seed=0)["mean"] is None


def test_how_many_questions_it_takes() -> None:
    """Half of 100 questions won, half of these lost again: sd 0.866 of a mean difference of 0.25."""
    pairs = [(1.0, 0.0)] * 50 + [(0.0, 1.0)] * 25 + [(1.0, 1.0)] * 25
    found = difference("a", "b", "em", pairs, seed=0)
    spread = np.std([a - b for a, b in pairs], ddof=1)
    assert found["detectable"] == pytest.approx(2.802 * spread / 10)
    assert found["needed"] == np.ceil((2.802 * spread / 0.25) ** 2)
    assert found["p"] < 0.01
