"""Fitting a threshold on answers whose perplexity discriminates, and on others."""

import pytest

from sleuth.studio.evaluation.calibration import MeasuredAnswer, fit
from sleuth.tools.errors import UsageError


def measured(right: list[float], wrong: list[float]) -> list[MeasuredAnswer]:
    return [
        MeasuredAnswer(question="?", answer="x", perplexity=perplexity, right=is_right)
        for is_right, each in ((True, right), (False, wrong))
        for perplexity in each
    ]


def test_the_threshold_lies_between_what_parts_cleanly() -> None:
    found = fit(measured([1.1, 1.2, 1.4], [2.0, 3.0, 9.0]))
    assert found.threshold == pytest.approx(1.7)
    assert (found.auroc, found.interval) == (1.0, (1.0, 1.0))
    assert (found.right, found.wrong) == (3, 3)
    assert found.tells


def test_it_keeps_the_largest_share_of_the_right_less_that_of_the_wrong() -> None:
    found = fit(measured([1.1, 1.2, 1.3, 5.0], [1.15, 2.0, 3.0, 4.0]))
    assert found.threshold == pytest.approx((1.3 + 2.0) / 2)
    assert (found.right_kept, found.wrong_kept) == (0.75, 0.25)
    # Of the 16 pairs of a right and a wrong answer, those in which the right one is the surer one.
    assert found.auroc == pytest.approx((4 + 3 + 3 + 0) / 16)


def test_interval_of_uninformative_perplexity_includes_chance() -> None:
    found = fit(measured([1.0 + at / 10 for at in range(20)], [1.05 + at / 10 for at in range(20)]))
    assert found.interval[0] < 0.5 < found.interval[1]
    assert not found.tells
    assert found == fit(measured([1.0 + at / 10 for at in range(20)], [1.05 + at / 10 for at in range(20)]))


def test_what_was_not_measured_does_not_count() -> None:
    unmeasured = MeasuredAnswer(question="?", answer="", perplexity=None, right=False)
    assert fit([*measured([1.1], [2.0]), unmeasured]).wrong == 1


@pytest.mark.parametrize(("right", "wrong", "are"), [([1.0], [], "right"), ([], [1.0, 2.0], "wrong")])
def test_both_kinds_are_needed(right: list[float], wrong: list[float], are: str) -> None:
    with pytest.raises(UsageError, match=f"answers are {are}"):
        fit(measured(right, wrong))


def test_without_perplexities_there_is_nothing_to_fit() -> None:
    with pytest.raises(UsageError, match="No answer has a perplexity"):
        fit([MeasuredAnswer(question="?", answer="x", perplexity=None, right=True)])
