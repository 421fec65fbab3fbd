"""The threshold that parts right answers from wrong ones best, and how well anything could.

Needs scikit-learn, which takes a second to import: call it in a thread.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sleuth.tools.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 1000
"""Of the bootstrap behind the interval."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One question answered by a model from its knowledge alone; `perplexity` is None where there was none."""

    question: str
    answer: str
    perplexity: float | None
    right: bool
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class Point:
    """What a threshold would do: of all right answers and of all wrong ones, the shares that lie below it."""

    threshold: float
    right_kept: float
    wrong_kept: float


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The curve, the area under it with its 95 % interval, and the point on it with the largest difference of shares.

    An area of 0.5 is what chance gives: perplexity tells nothing then.
    """

    threshold: float
    auroc: float
    interval: tuple[float, float]
    right: int
    wrong: int
    curve: list[Point]

    @property
    def tells(self) -> bool:
        """Whether perplexity tells right from wrong at all."""
        return self.interval[0] > 0.5


def fit(measured: Sequence[Measured], *, seed: int = 0) -> Fit:
    """Receiver operating characteristic of low perplexity as the sign of a right answer; Youden's index chooses.

    Raises:
        UsageError: all answers are right, or all are wrong; or none has a perplexity.
    """
    import numpy as np
    from sklearn.metrics import roc_auc_score

    told = [(each.right, each.perplexity) for each in measured if each.perplexity is not None]
    if not told:
        raise UsageError(
            "No answer has a perplexity: nothing was found for the questions, or the model server gives no "
            "log-probabilities (`sleuth doctor` says whether it does)."
        )
    right = np.array([each for each, _ in told], dtype=bool)
    sure = -np.array([perplexity for _, perplexity in told], dtype=float)
    if right.all() or not right.any():
        raise UsageError(
            f"All {len(right)} answers are {'right' if right.all() else 'wrong'}: a threshold is fitted on both. "
            "Take more questions, some that the documents answer and some that they do not."
        )
    curve = _curve(right, sure)
    best = max(curve, key=lambda point: (point.right_kept - point.wrong_kept, -point.threshold))
    return Fit(
        threshold=best.threshold,
        auroc=float(roc_auc_score(right, sure)),
        interval=_interval(right, sure, seed),
        right=int(right.sum()),
        wrong=int((~right).sum()),
        curve=curve,
    )


def _curve(right: "NDArray[np.bool_]", sure: "NDArray[np.float64]") -> list[Point]:
    """A point for each perplexity measured; as it must lie below the threshold, that is halfway to the next one."""
    from sklearn.metrics import roc_curve

    wrong_kept, right_kept, bounds = roc_curve(right, sure, drop_intermediate=False)
    perplexities = [float(-bound) for bound in bounds[1:]]  # the first point keeps nothing
    above = [*perplexities[1:], 2 * perplexities[-1]]
    thresholds = [1.0, *((low + high) / 2 for low, high in zip(perplexities, above, strict=True))]
    return [
        Point(threshold=at, right_kept=float(kept), wrong_kept=float(lost))
        for at, kept, lost in zip(thresholds, right_kept, wrong_kept, strict=True)
    ]


def _interval(right: "NDArray[np.bool_]", sure: "NDArray[np.float64]", seed: int) -> tuple[float, float]:
    """95 % of the areas under the curves of resamples that have as many right and wrong answers."""
    import numpy as np

    drawn = np.random.default_rng(seed)
    sides = [np.flatnonzero(right), np.flatnonzero(~right)]
    resamples = ([sure[drawn.choice(side, side.size)] for side in sides] for _ in range(RESAMPLES))
    low, high = np.percentile([_area(*resample) for resample in resamples], [2.5, 97.5])
    return float(low), float(high)


def _area(right: "NDArray[np.float64]", wrong: "NDArray[np.float64]") -> float:
    """Area under the curve by the Mann-Whitney statistic; much faster than scikit-learn's for a thousand resamples."""
    import numpy as np
    from scipy.stats import rankdata

    above = rankdata(np.concatenate([right, wrong]))[: right.size].sum() - right.size * (right.size + 1) / 2
    return float(above / (right.size * wrong.size))
