"""Long sweeps in slices: passed cases are stored, and the next slice resumes after them.

For `SLEUTH_SLICE_SECONDS` (default: 50 minutes) a slice starts new cases. The record is below .cache/faults, a line of
JSON for each seed; remove the folder to restart all sweeps.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[4] / ".cache" / "faults"
_SECONDS = 3000.0


@cache
def _until() -> float:
    """The end of this slice, which is the same for all sweeps in it."""
    return time.monotonic() + float(os.environ.get("SLEUTH_SLICE_SECONDS", _SECONDS))


class Sweep:
    """The seeds of one sweep, and what was seen with each."""

    def __init__(self, name: str, seeds: int) -> None:
        self._file = FOLDER / f"{name}.jsonl"
        self._seeds = seeds
        FOLDER.mkdir(parents=True, exist_ok=True)

    def left(self) -> Iterator[int]:
        """The seeds that have not passed, as long as the slice lasts."""
        passed = {row["seed"] for row in self.rows()}
        for seed in range(self._seeds):
            if seed not in passed and time.monotonic() < _until():
                yield seed

    def due(self) -> bool:
        """Return whether cases are left; skip the test if they have to wait for the next slice."""
        if len(self.rows()) >= self._seeds:
            return False
        if time.monotonic() >= _until():
            self.end()
        return True

    def passed(self, seed: int, **seen: Any) -> None:
        """Writes down that a seed has passed."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps({"seed": seed, **seen}))

    def rows(self) -> list[dict[str, Any]]:
        """Return the stored cases; a line that a kill has truncated does not count."""
        if not self._file.exists():
            return []
        return [row for line in self._file.read_text(encoding="utf-8").splitlines() if (row := _row(line)) is not None]

    def end(self) -> list[dict[str, Any]]:
        """All that was seen, once all seeds have passed; otherwise the test is skipped until the next slice."""
        rows = self.rows()
        if len(rows) < self._seeds:
            pytest.skip(f"{len(rows)} of {self._seeds} have passed: the next `make test-faults` goes on")
        return rows


def _row(line: str) -> dict[str, Any] | None:
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return row


def count(rows: list[dict[str, Any]], name: str) -> dict[str, int]:
    """Return the count of each value; values that are counts are added up."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row[name] if isinstance(row[name], dict) else [str(row[name])])
    return dict(total.most_common())
