"""`sleuth sync` in a terminal, and while it follows a folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import SLEUTH, Terminal

COMMAND = [*SLEUTH, "sync"]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "fair.md").write_text("The kelp fair is held in May.", encoding="utf-8")
    yield {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none", "COLUMNS": "200", "TERM": "xterm"}


@pytest.mark.parametrize(("reply", "shown"), [("y", "1 added"), ("n", "Nothing was changed"), ("", "Nothing was")])
def test_terminal_is_asked(tmp_path: Path, environment: dict[str, str], reply: str, shown: str) -> None:
    terminal = Terminal([*COMMAND, str(tmp_path / "notes")], environment)
    terminal.expect_exact("Apply these changes? [y/N]")
    assert "add fair.md" in terminal.shown
    terminal.sendline(reply)
    terminal.expect_exact(shown)
    assert terminal.end() == 0


@pytest.mark.nightly
def test_watch_follows_changes_until_it_is_interrupted(tmp_path: Path, environment: dict[str, str]) -> None:
    terminal = Terminal([*COMMAND, str(tmp_path / "notes"), "--yes", "--watch"], environment)
    terminal.expect_exact("Ctrl-C ends it.")
    assert "1 added" in terminal.shown
    (tmp_path / "notes" / "fair.md").rename(tmp_path / "notes" / "kelp.md")
    terminal.expect_exact("1 added, 0 updated, 1 removed")
    terminal.interrupt()
    assert terminal.end() == 130
