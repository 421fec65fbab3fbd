"""`sleuth runs fork` refuses values that it cannot read."""

import pytest
from typer.testing import CliRunner

from sleuth.studio.cli.commands.runs import runs_app
from sleuth.tools.errors import UsageError


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("[" * 20_000 + "]" * 20_000, "--state notes is nested too deeply"),
        ("[" * 20_000, "nested too"),
        ("{", "not 'n"),
    ],
    ids=["deep", "unclosed", "broken"],
)
def test_fork_refuses_json_that_cannot_be_read(value: str, told: str) -> None:
    result = CliRunner().invoke(runs_app, ["fork", "first", "--at", "1f0", "--state", f"notes={value}"])
    assert isinstance(result.exception, UsageError)
    assert told in str(result.exception)
    assert len(str(result.exception)) < 500
