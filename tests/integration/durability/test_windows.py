"""Slices of long sweeps: passed cases stay passed, and nothing begins after the end of a slice."""

import ast
from pathlib import Path

import pytest
import windows as slices

pytestmark = pytest.mark.integration


def marked(path: Path) -> bool:
    """Return whether a test of this file, or all of them, are long sweeps."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return any(isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.faults" for node in nodes)


def test_long_sweeps_run_in_slices() -> None:
    hunts = [path for path in Path(__file__).parents[1].rglob("test_*.py") if marked(path)]
    assert hunts
    assert not [path.name for path in hunts if "Sweep(" not in path.read_text(encoding="utf-8")]


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
