"""How steps of a run and moments of its history look."""

import io
from typing import Any

from rich.console import Console

from sleuth.graphs.core.events import Step
from sleuth.graphs.methods.retro_rag import summarize_removed
from sleuth.graphs.runs.history import CheckpointView
from sleuth.studio.cli.commands.runs import _moment_lines
from sleuth.studio.console.run_view import show_step

DEPARTURES = {
    "2 a": {"round": 2, "what": "a", "why": "scored 0.10"},
    "3 b": {"round": 3, "what": "b", "why": "scored 0.20"},
    "3 inference 1.1": {
        "round": 3,
        "what": "It is so.",
        "why": "its passages have left (b): no other passage supports it",
    },
}
LATEST = [
    "left in round 3: b: scored 0.20",
    "left in round 3: It is so.: its passages have left (b): no other passage supports it",
]


def test_what_left_the_evidence_last_is_told_with_the_reason() -> None:
    assert summarize_removed({"departures": DEPARTURES}) == LATEST
    assert summarize_removed({}) == []


def test_a_step_tells_the_answers_it_tried_and_what_left() -> None:
    update: dict[str, Any] = {"departures": DEPARTURES, "attempts": {"3": {"answer": ""}}}
    shown = io.StringIO()
    show_step(
        Step(thread="1", method="retro-rag", node="collate", state="finished", update=update),
        Console(file=shown, width=200),
    )
    lines = [line.strip() for line in shown.getvalue().splitlines()][1:]
    assert lines == ["answer tried: –", *LATEST]


def test_history_tells_what_left_in_lines_of_their_own() -> None:
    changed = {"departures": DEPARTURES, "round": 3}
    moment = CheckpointView(
        checkpoint="c", parent="", step=9, node=["collate"], next=["answer"], at="", changed=changed
    )
    assert [line.plain.strip() for line in _moment_lines(moment)[1:]] == ["round: 3", *LATEST]
