"""The exponents of what growth.py measures, its table, and its picture."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.studio.evaluation.reporting import draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

P95 = tuple(f"{mode}_p95_ms" for mode in ("keyword", "dense", "hybrid", "graph", "graph-ppr"))
DRAWN = ("ingest_s", "disk_mb", "ingest_mib", "search_mib", "add_one_ms", *P95)
KEY = ("embedder", "database", "vectors", "seed", "passages")
"""What identifies a row."""

Row = Mapping[str, Any]
Fit = dict[str, float]


def exponents(rows: Sequence[Row], size: str) -> dict[str, Fit]:
    """Return each measure's exponent with the variance explained, and the exponent between the last two sizes."""
    if len(rows) < 2:
        return {}
    sizes = np.log([row[size] for row in rows])
    fits: dict[str, Fit] = {}
    for name in rows[0]:
        values = [row.get(name, 0.0) for row in rows]
        if name != size and all(isinstance(value, int | float) and value > 0 for value in values):
            logs = np.log(values)
            if not np.ptp(logs):
                continue
            exponent = float(np.polyfit(sizes, logs, 1)[0])
            r2 = float(np.corrcoef(sizes, logs)[0, 1] ** 2)
            last = float((logs[-1] - logs[-2]) / (sizes[-1] - sizes[-2]))
            fits[name] = {"exponent": round(exponent, 3), "r2": round(r2, 3), "last": round(last, 3)}
    return fits


def table(rows: Sequence[Row], size: str) -> str:
    """Return a line for each measure: its value at each size, then the exponents."""
    fits = exponents(rows, size)
    names = dict.fromkeys(name for row in rows for name in row if name not in (*KEY, size))
    lines = [f"{size:24}" + "".join(f"{row[size]:>12,}" for row in rows) + f"{'exponent':>10}{'last':>8}"]
    for name in names:
        values = "".join(f"{row[name]:>12.4g}" if name in row else f"{'–':>12}" for row in rows)
        fit = f"{fits[name]['exponent']:>10.2f}{fits[name]['last']:>8.2f}" if name in fits else ""
        lines.append(f"{name:24}{values}{fit}")
    return "\n".join(lines)


def draw(rows: Sequence[Row], fits: Mapping[str, Fit]) -> str:
    """Return each measure as a multiple of its value at the smallest size; what is parallel to the dashed line is
    linear.
    """
    sizes = [row["passages"] for row in rows]

    def lines(axes: "Axes") -> None:
        axes.plot(sizes, [size / sizes[0] for size in sizes], "--", color="grey", label="linear")
        for at, name in enumerate(name for name in DRAWN if name in fits):
            values = [row[name] / rows[0][name] for row in rows]
            label = f"{name.removesuffix('_ms').replace('_', ' ')}: {fits[name]['exponent']:.2f}"
            axes.plot(sizes, values, "os^D"[at % 4] + "-", color=f"C{at}", label=label)
        axes.set(xscale="log", yscale="log", xlabel="passages", ylabel=f"times the value at {sizes[0]:,}")
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), title="exponent")

    return draw_svg(lines, "")
