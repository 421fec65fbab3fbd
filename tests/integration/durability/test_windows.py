"""Slices of long sweeps: passed cases stay passed, and nothing begins after the end of a slice."""

from pathlib import Path

import pytest
import windows as slices

pytestmark = pytest.mark.integration


def test_ended_slice_begins_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = False
    monkeypatch.setattr(slices, "FOLDER", tmp_path)
    monkeypatch.setattr(slices, "_until", lambda: float("-inf" if over else "inf"))
    sweep = slices.Sweep("of this test", 3)
    for seed in sweep.left():
        sweep.passed(seed, kills=2)
        over = seed == 1
    with pytest.raises(pytest.skip.Exception, match="2 of 3 have passed"):
        sweep.end()
    over = False
    again = slices.Sweep("of this test", 3)
    assert list(again.left()) == [2]
    again.passed(2, kills=2)
    assert slices.count(again.end(), "kills") == {"2": 3}
