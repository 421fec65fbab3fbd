"""Results and progress go where they belong."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from sleuth.studio.output import activity, emit


@dataclass(frozen=True, kw_only=True)
class Thing:
    place: Path
    names: tuple[str, ...]


def test_json_is_one_value_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    emit([Thing(place=Path("/a"), names=("ä", "b"))], True, "for people")
    assert json.loads(capsys.readouterr().out) == [{"place": "/a", "names": ["ä", "b"]}]


def test_text_keeps_its_brackets_and_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[bold] " + "long " * 60
    emit(None, False, text)
    assert capsys.readouterr().out == text + "\n"


def test_progress_away_from_a_terminal_is_lines_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with activity("Working") as report:
        report("first [stage]")
        report("second stage")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "first [stage]\nsecond stage\n"
