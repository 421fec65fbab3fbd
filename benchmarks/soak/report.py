"""Test of the samples of a soak test for growth.

The first seconds of each slice are left out, because caches fill. The other samples are averaged by the minute, and a
line is fitted to the means by least squares. Memory, handles and threads are those of the server, which each slice
restarts: all slices share the slope, and each has a level of its own. The disk continues from slice to slice: one line
through all, over the time of the test. The slope's 95 % interval is that of the t distribution. A measure is flat if
the interval includes zero or less, or if the slope is less than one percent of the mean per hour.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.harness import read_lines, write_json

MEASURES = ("rss_mib", "handles", "threads", "disk_mb")
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


class Minute(NamedTuple):
    """Mean of a measure in a minute of a slice; `hours` continue from slice to slice."""

    slice: int
    hours: float
    value: float


def minutes(samples: Sequence[Row], measure: str, warm: float) -> list[Minute]:
    ends: dict[int, float] = {}
    cells: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in samples:
        ends[row["slice"]] = max(ends.get(row["slice"], 0.0), row["at"])
        if row["at"] >= warm:
            cells[row["slice"], int(row["at"] // 60)].append(row)
    found = []
    for (number, _), rows in sorted(cells.items()):
        before = sum(end for other, end in ends.items() if other < number)
        hours = (before + float(np.mean([row["at"] for row in rows]))) / 3600
        found.append(Minute(number, hours, float(np.mean([row[measure] for row in rows]))))
    return found


def slope(points: Sequence[Minute], *, levels: bool) -> Slope | None:
    """Return the line through the minutes, with a level for each slice or one for all; None for too few minutes."""
    from scipy.stats import t

    slices = np.array([point.slice for point in points])
    columns = [slices == number for number in sorted(set(slices.tolist()))] if levels else [slices >= 0]
    degrees = len(points) - len(columns) - 1
    if degrees < 3:
        return None
    values = np.array([point.value for point in points])
    design: npt.NDArray[np.float64] = np.column_stack([[point.hours for point in points], *columns]).astype(float)
    fitted, *_ = np.linalg.lstsq(design, values, rcond=None)
    rest = values - design @ fitted
    variance = float(rest @ rest) / degrees * np.linalg.pinv(design.T @ design)[0, 0]
    reach = float(t.ppf(0.975, degrees)) * float(np.sqrt(variance))
    hourly = float(fitted[0])
    return Slope(hourly=hourly, low=hourly - reach, high=hourly + reach, mean=float(values.mean()))


def write(folder: Path, warm: float) -> int:
    """Print the work and the slopes of all slices, and write them to soak.json.

    Returns 1 if something was lost, or a measure is not flat.
    """
    samples, slices = read_lines(folder / "samples.jsonl"), read_lines(folder / "slices.jsonl")
    slopes = {name: slope(minutes(samples, name, warm), levels=name != "disk_mb") for name in MEASURES}
    done: Counter[str] = Counter()
    for each in slices:
        done.update(each["done"])
    lost = [line for each in slices for line in each["lost"]]
    found = {
        "minutes": sum(each["minutes"] for each in slices),
        "slices": len(slices),
        "done": dict(done.most_common()),
        "lost": lost,
        "slopes": {name: {**each._asdict(), "flat": each.flat} if each else None for name, each in slopes.items()},
    }
    write_json(folder / "soak.json", found)
    print(json.dumps(found, indent=1))
    return int(bool(lost) or any(each is not None and not each.flat for each in slopes.values()))
