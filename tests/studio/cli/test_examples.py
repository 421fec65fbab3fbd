"""The examples in the help of the commands."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from sleuth.studio.cli.app import COMMANDS, app, load
from sleuth.studio.cli.examples import EXAMPLES


def commands() -> Iterator[tuple[str, Any]]:
    for name in COMMANDS:
        command = load(name)
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {each}", found) for each, found in inner.items()) if inner else [(name, command)]


ALL = dict(commands())


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
