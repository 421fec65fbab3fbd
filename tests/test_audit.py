"""A known vulnerability fails the audit unless it is excepted; unchecked packages are reported."""

from pathlib import Path

import audit
import pytest

FOUND = {
    "dependencies": [
        {"name": "amber", "version": "1.0", "vulns": []},
        {
            "name": "brick",
            "version": "2.0",
            "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.1"], "description": ""}],
        },
        {"name": "cedar", "skip_reason": "not found"},
    ]
}


def test_a_vulnerability_fails() -> None:
    lines, harmless = audit.verdict(FOUND, {})
    assert not harmless
    assert lines == [
        "brick 2.0: PYSEC-1, CVE-1; mended in 2.1",
        "2 of 3 dependencies audited; this index does not tell of the others",
    ]


def test_an_exception_holds_by_an_alias() -> None:
    lines, harmless = audit.verdict(FOUND, {"CVE-1": "nothing of ours calls it"})
    assert harmless
    assert lines[0] == "brick 2.0: PYSEC-1, CVE-1; excepted: nothing of ours calls it"


def test_audit_reports_that_nothing_was_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "found.json").touch()
    (tmp_path / "said").write_text("Traceback\nConnectionError: no route\n")
    assert audit.main(tmp_path) == 0
    assert capsys.readouterr().out == "Not audited: ConnectionError: no route\n"
