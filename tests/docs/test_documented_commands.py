"""The commands of the documentation, read by the parser of the command line without running them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from every_command import every_command

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "training").rglob("*.md"))]
BLOCK = re.compile(r"^ *```(?:bash|sh|console)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
UsageError = typer.BadParameter.__mro__[1]
"""Of the click that Typer comes with."""
ALL = every_command()
ENDS = ("|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1")


def commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each `sleuth` command in the blocks of a page; those with `…` are shortened."""
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|;", line.strip().removeprefix("$ ").partition(" #")[0]):
                match = re.match(r"\s*(?:[A-Z_]+=\S* )*sleuth (.*)", part)
                if match and not re.search(r"…|\.\.\.|\$\(|<<", match[1]):
                    yield list(_until_redirected(shlex.split(match[1])))


def _until_redirected(words: list[str]) -> Iterator[str]:
    for word in words:
        if word in ENDS:
            return
        yield word


def parse(arguments: list[str]) -> None:
    """Parse a command with its options; raise UsageError for one that does not exist."""
    found = [length for length in (1, 2) if " ".join(arguments[:length]) in ALL]
    if found:
        name = " ".join(arguments[: found[0]])
        ALL[name].make_context(name, arguments[found[0] :])
    elif not arguments[-1].startswith("-"):  # an option of a group, such as --help
        raise UsageError(f"No such command {shlex.join(arguments)!r}.")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_are_understood(page: Path) -> None:
    for arguments in commands(page.read_text(encoding="utf-8")):
        try:
            parse(arguments)
        except typer.Exit:  # --help
            pass
        except UsageError as error:
            pytest.fail(f"sleuth {shlex.join(arguments)}: {error}")


@pytest.mark.parametrize("wrong", ["ask --no-such-option", "runs no-such-command", "no-such-command"])
def test_command_that_does_not_exist_is_noticed(wrong: str) -> None:
    with pytest.raises(UsageError):
        parse(wrong.split())
