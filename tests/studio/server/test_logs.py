import json
import logging

import pytest

from sleuth.studio.server.telemetry.logs import Lines, LogFormat

FORGED = "a.txt\n2026-01-01T00:00:00.000Z INFO sleuth: forged\r\x1b[2J\x9b1m\u2028\u202e"
MARKS = "\n\r\x1b\x9b\u2028\u202e"


def record(error: Exception | None = None) -> logging.LogRecord:
    raised = (type(error), error, None) if error else None
    made = logging.LogRecord("sleuth", logging.ERROR, __file__, 1, "cannot read %s", (FORGED,), raised)
    made.about = {"name": FORGED}
    return made


@pytest.mark.parametrize("format", ["json", "text"])
def test_text_of_others_stays_in_its_line(format: LogFormat) -> None:
    line = Lines(format).format(record())
    assert not [mark for mark in MARKS if mark in line]
    assert "\\u001b[2J\\u009b1m\\u2028\\u202e" in line
    if format == "json":
        assert json.loads(line)["message"] == f"cannot read {FORGED}"
        assert json.loads(line)["name"] == FORGED


def test_lines_of_a_traceback_are_indented() -> None:
    first, *others = Lines("text").format(record(ValueError(FORGED))).split("\n")
    assert first.partition(" ")[2].startswith("ERROR sleuth: cannot read a.txt")
    assert len(others) > 1
    assert all(line.startswith("  ") for line in others)
    assert not [mark for mark in MARKS[1:] if mark in "".join(others)]
