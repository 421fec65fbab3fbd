"""The text of an ingest's result: a few lines, whatever fails."""

import pytest

from sleuth.graphs.ingestion.pipeline import IngestProgress, IngestReport
from sleuth.studio.cli.commands.documents import MAX_SKIPPED, report_lines, show_progress


@pytest.mark.parametrize("reasons", [["has no text"], ["has no text", "is empty", "is encrypted"]])
def test_many_failures_are_counted_by_reason(reasons: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    failures = list[str]()
    with show_progress(failures) as show:
        for number in range(2_000):
            show(IngestProgress(failure=f"notes.jsonl, line {number}: {reasons[number % len(reasons)]}"))
    lines = report_lines(IngestReport(failed=2_000, warnings=failures[:20]), failures)
    assert len(capsys.readouterr().err.splitlines()) == MAX_SKIPPED and len(failures) == 2_000
    assert len(lines) == len(reasons)
    assert sum(int(line.removeprefix("! ").partition(" ")[0].replace(",", "")) for line in lines) == 1_990


def test_failures_for_many_reasons_end_with_their_number() -> None:
    failures = [f"{number}.md: reason {number}" for number in range(50)]
    lines = report_lines(IngestReport(warnings=["The index was repaired."]), failures)
    assert lines[MAX_SKIPPED:] == ["The index was repaired.", "! 30 more reasons (--json lists all)."]
