"""Test of the samples of a soak for growth, and their picture.

The first seconds of each slice count for nothing: caches fill. What is left is averaged by the minute, and a line is
fitted to the means by least squares. Memory, handles and threads are the server's, which each slice restarts: all
slices share the slope, and each has a level of its own. The disk continues from slice to slice: one line through all,
over the time that was soaked. The slope's 95 % interval is that of the t distribution. A measure is flat if the
interval reaches down to zero, or if the slope comes to less than one per cent of the mean in an hour; how much
growth the minutes cannot exclude is the interval's upper end.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sleuth.studio.evaluation.reporting import draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURES = ("rss_mib", "handles", "threads", "disk_mb")
GOING_ON = ("disk_mb",)
ENOUGH = 0.01
"""Of the mean, in an hour."""

Row = dict[str, Any]


class Slope(NamedTuple):
    """Growth of a measure per hour with its 95 % interval, and its mean."""

    hourly: float
    low: float
    high: float
    mean: float

    @property
    def flat(self) -> bool:
        return self.low <= 0 or self.hourly < ENOUGH * self.mean


def minutes(samples: Sequence[Row], measure: str, warm: float) -> list[tuple[int, float, float]]:
    """Slice, hours soaked, and mean of each minute; hours continue from slice to slice."""
    ends: dict[int, float] = {}
    for row in samples:
        ends[row["slice"]] = max(ends.get(row["slice"], 0.0), row["at"])
    begins = {number: sum(end for other, end in ends.items() if other < number) for number in ends}
    cells: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in samples:
        if row["at"] >= warm:
            cells[row["slice"], int(row["at"] // 60)].append(row)
    return [
        (number, (begins[number] + float(np.mean([row["at"] for row in rows]))) / 3600, float(np.mean(values)))
        for (number, _), rows in sorted(cells.items())
        if (values := [row[measure] for row in rows])
    ]


def slope(points: Sequence[tuple[int, float, float]], *, levels: bool) -> Slope | None:
    """Return the line through the minutes, with a level for each slice or one for all; None of fewer than three to
    spare.
    """
    from scipy.stats import t

    numbers = sorted({number for number, _, _ in points}) if levels else [None]
    hours, values = (np.array([point[at] for point in points]) for at in (1, 2))
    columns = [np.array([number is None or point[0] == number for point in points], dtype=float) for number in numbers]
    spare = len(points) - len(columns) - 1
    if spare < 3:
        return None
    design: npt.NDArray[np.float64] = np.column_stack([hours, *columns])
    fitted, *_ = np.linalg.lstsq(design, values, rcond=None)
    rest = values - design @ fitted
    variance = float(rest @ rest) / spare * np.linalg.pinv(design.T @ design)[0, 0]
    reach = float(t.ppf(0.975, spare)) * float(np.sqrt(variance))
    hourly = float(fitted[0])
    return Slope(hourly=hourly, low=hourly - reach, high=hourly + reach, mean=float(values.mean()))


def draw(samples: Sequence[Row]) -> str:
    """Return each measure in parts of its mean over the time soaked, minute by minute, from each slice's start on."""

    def lines(axes: "Axes") -> None:
        for at, measure in enumerate(MEASURES):
            points = minutes(samples, measure, 0)
            mean = float(np.mean([value for _, _, value in points]))
            hours = [60 * hour for _, hour, _ in points]
            label = f"{measure.replace('_', ' ')}, mean {mean:,.0f}"
            axes.plot(hours, [value / mean for _, _, value in points], color=f"C{at}", label=label, linewidth=1)
        axes.set(xlabel="minutes soaked", ylabel="parts of the mean")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8, loc="lower right")

    return draw_svg(lines, "")


def read(file: Path) -> list[Row]:
    """Return the lines that are whole."""
    whole = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in whole if line.endswith("\n")]


def _slopes(samples: Sequence[Row], warm: float) -> dict[str, Slope | None]:
    return {name: slope(minutes(samples, name, warm), levels=name not in GOING_ON) for name in MEASURES}


def _told(slopes: dict[str, Slope | None]) -> dict[str, Row | None]:
    return {name: {**each._asdict(), "flat": each.flat} if each else None for name, each in slopes.items()}


def tell(folder: Path, warm: float) -> int:
    """Print what was done and the slopes of all slices and of each, and writes soak.json and soak.svg.

    Returns 1 if something was lost or, over all slices, is not flat.
    """
    samples, slices = read(folder / "samples.jsonl"), read(folder / "slices.jsonl")
    slopes = _slopes(samples, warm)
    numbers = sorted({row["slice"] for row in samples})
    done: Counter[str] = Counter()
    for each in slices:
        done.update(each["done"])
    lost = [line for each in slices for line in each["lost"]]
    found = {
        "minutes": sum(each["minutes"] for each in slices),
        "slices": len(slices),
        "done": dict(done.most_common()),
        "lost": lost,
        "slopes": _told(slopes),
        "slices alone": [_told(_slopes([row for row in samples if row["slice"] == at], warm)) for at in numbers],
    }
    written = json.dumps(found, indent=1)
    (folder / "soak.json").write_text(written + "\n", encoding="utf-8")
    if samples:
        (folder / "soak.svg").write_text(draw(samples), encoding="utf-8")
    print(written)
    return int(bool(lost) or any(each is not None and not each.flat for each in slopes.values()))
