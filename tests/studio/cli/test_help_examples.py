"""The examples in the help of the commands."""

import shlex

import pytest
from every_command import every_command
from typer.testing import CliRunner

from sleuth.studio.cli.app import app
from sleuth.studio.cli.examples import EXAMPLES

ALL = every_command()


def test_every_command_has_examples() -> None:
    assert EXAMPLES.keys() == ALL.keys()


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in EXAMPLES.items() for line in lines])
def test_example_is_a_valid_command_line(name: str, line: str) -> None:
    words = shlex.split(line.partition(" > ")[0])
    begin = ["sleuth", *name.split()]
    assert words[: len(begin)] == begin
    ALL[name].make_context(name, words[len(begin) :])  # raises for what cannot be parsed


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_ends_with_the_examples_line_by_line(option: str) -> None:
    shown = CliRunner().invoke(app, ["runs", "fork", option]).output
    assert shown.rstrip().endswith("\n".join(f"  {line}" for line in EXAMPLES["runs fork"]))
