"""Shell completion."""

import pytest
from typer.testing import CliRunner

from sleuth.studio.cli.app import app


@pytest.mark.parametrize(
    ("words", "expected"),
    [("resu", ["resume"]), ("--vers", ["--version"]), ("ask --max-c", ["--max-calls"]), ("runs pr", ["prune"])],
)
def test_words_are_completed(words: str, expected: list[str]) -> None:
    environment = {
        "_SLEUTH_COMPLETE": "complete_bash",
        "COMP_WORDS": f"sleuth {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    shown = CliRunner().invoke(app, prog_name="sleuth", env=environment).stdout
    assert shown.split("\n")[:-1] == expected
