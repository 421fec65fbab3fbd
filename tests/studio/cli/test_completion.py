"""Shell completion, and the lines of `sleuth --help`, which are written without importing the commands."""

import pytest
from typer.testing import CliRunner

from sleuth.studio.cli.app import COMMANDS, app, load


@pytest.mark.parametrize(
    ("words", "expected"),
    [("resu", ["resume"]), ("ask --max-c", ["--max-calls"]), ("runs pr", ["prune"])],
)
def test_words_are_completed(words: str, expected: list[str]) -> None:
    environment = {
        "_SLEUTH_COMPLETE": "complete_bash",
        "COMP_WORDS": f"sleuth {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    shown = CliRunner().invoke(app, prog_name="sleuth", env=environment).stdout
    assert shown.split("\n")[:-1] == expected


@pytest.mark.parametrize("name", COMMANDS)
def test_line_of_a_command_is_the_first_of_its_help(name: str) -> None:
    assert COMMANDS[name][1] == " ".join(load(name).help.split("\n\n")[0].split())
