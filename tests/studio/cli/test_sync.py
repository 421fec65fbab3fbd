"""`sleuth sync` outside a terminal."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from sleuth.studio.cli.app import app
from sleuth.tools.errors import UsageError

Sync = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "fair.md").write_text("The kelp fair is held in May.", encoding="utf-8")
    (folder / "mill.md").write_text("The mill grinds corn.", encoding="utf-8")
    return folder


@pytest.fixture
def sync(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sync:
    monkeypatch.setenv("SLEUTH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SLEUTH_EMBEDDER", "none")
    return lambda *options: CliRunner().invoke(app, ["sync", str(folder), *options])


def test_plan_is_only_printed_with_the_command_that_applies_it(sync: Sync, folder: Path) -> None:
    for _ in range(2):
        shown = sync()
        assert shown.exit_code == 0
        assert shown.stdout.splitlines() == [
            f"{folder}: 2 to add, 0 to update, 0 to remove, 0 unchanged",
            "add fair.md",
            "add mill.md",
            f"Nothing was changed. To apply these changes: sleuth sync {folder} --yes",
        ]


def test_yes_applies_the_plan(sync: Sync, folder: Path) -> None:
    planned = json.loads(sync("--json").stdout)
    assert (planned["folder"], planned["add"], planned["applied"]) == (str(folder), ["fair.md", "mill.md"], None)
    assert sync("--yes").stdout.startswith("2 added, 0 updated, 0 removed, 0 unchanged: 2 new passages in ")
    (folder / "fair.md").write_text("The kelp fair is held in June.", encoding="utf-8")
    (folder / "mill.md").unlink()
    (folder / "empty.md").write_bytes(b"")
    done = sync("--yes")
    assert done.stdout.startswith("0 added, 1 updated, 1 removed, 0 unchanged: 1 new passage in ")
    assert "empty.md: is empty" in done.stderr
    assert "remove mill.md" in done.stderr
    again = json.loads(sync("--json", "--yes").stdout)
    assert (again["add"], again["unchanged"], again["unreadable"]) == ([], 1, ["empty.md"]), "it is tried once"
    assert again["applied"] is None or not again["applied"]["failures"]


def test_removal_of_all_documents_needs_the_option_that_the_plan_and_the_error_name(sync: Sync, folder: Path) -> None:
    sync("--yes")
    for file in folder.iterdir():
        file.unlink()
    assert sync().stdout.endswith(f"To apply these changes: sleuth sync {folder} --allow-mass-removal --yes\n")
    refused = sync("--yes")
    assert isinstance(refused.exception, UsageError) and "2 of 2 documents" in str(refused.exception)
    assert "0 added, 0 updated, 2 removed" in sync("--allow-mass-removal", "--yes").stdout


def test_long_plan_is_cut(sync: Sync, folder: Path) -> None:
    for number in range(25):
        (folder / f"n{number:02}.md").write_text("A note.", encoding="utf-8")
    lines = sync().stdout.splitlines()
    assert lines[0].startswith(f"{folder}: 27 to add")
    assert (len(lines), lines[-2]) == (23, "add 7 more (--json lists all)")


def test_empty_name_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLEUTH_HOME", os.fspath(tmp_path))
    result = CliRunner().invoke(app, ["sync", ""])
    assert isinstance(result.exception, UsageError)


def test_own_fields_are_stored_and_in_the_command_that_applies_them(sync: Sync, folder: Path) -> None:
    assert sync("--meta", "client=Ada B").stdout.splitlines()[-1].endswith(f"{folder} '--meta=client=Ada B' --yes")
    assert sync("--meta", "client=Ada B", "--yes").exit_code == 0
    listed = json.loads(CliRunner().invoke(app, ["docs", "list", "--json"]).stdout)
    assert [(each["id"], each["meta"]) for each in listed] == [
        ("fair.md", {"client": "Ada B"}),
        ("mill.md", {"client": "Ada B"}),
    ]
    refused = sync("--meta", "type=pdf", "--yes")
    assert isinstance(refused.exception, UsageError) and "'type' cannot be an own field" in str(refused.exception)
