"""Growth of measures with a size: exponents, and a table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]


def read_rows(file: Path) -> list[Row]:
    """Return the rows that were measured before."""
    rows: list[Row] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return rows


def exponents(rows: Sequence[Row], size: str) -> dict[str, tuple[float, float]]:
    """Return each measure's exponent over all sizes, and between the last two; 1 is linear growth."""
    sizes = np.log([row[size] for row in rows])
    fits = {}
    for name in rows[0] if len(rows) > 1 else ():
        values = [row.get(name, 0.0) for row in rows]
        if name != size and all(isinstance(value, int | float) and value > 0 for value in values):
            logs = np.log(values)
            last = (logs[-1] - logs[-2]) / (sizes[-1] - sizes[-2])
            fits[name] = float(np.polyfit(sizes, logs, 1)[0]), float(last)
    return fits


def table(rows: Sequence[Row], size: str) -> str:
    """Return a line for each measure: its value at each size, then the exponents."""
    fits = exponents(rows, size)
    lines = [f"{size:24}" + "".join(f"{row[size]:>12,}" for row in rows) + f"{'exponent':>10}{'last':>8}"]
    for name in dict.fromkeys(name for row in rows for name in row if name != size):
        values = [row.get(name, "–") for row in rows]
        cells = "".join(f"{value:>12.4g}" if isinstance(value, int | float) else f"{value:>12}" for value in values)
        lines.append(f"{name:24}{cells}" + ("{:>10.2f}{:>8.2f}".format(*fits[name]) if name in fits else ""))
    return "\n".join(lines)
