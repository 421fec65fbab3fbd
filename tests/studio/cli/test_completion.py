"""Shell completion, and the table that it reads."""

from pathlib import Path

import pytest
from entries import entry
from typer.testing import CliRunner

from sleuth.graphs.persistence import Thread, open_store
from sleuth.studio.cli import completion, completion_table
from sleuth.studio.cli.app import TABLE, app
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import catalogue_url


def completed(words: str) -> list[str]:
    environment = {
        "_SLEUTH_COMPLETE": "complete_bash",
        "COMP_WORDS": f"sleuth {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    return CliRunner().invoke(app, prog_name="sleuth", env=environment).stdout.split("\n")[:-1]


def test_table_has_every_command_as_it_is() -> None:
    assert TABLE.read_text(encoding="utf-8") == completion_table.to_text(), (
        "run: python -m sleuth.studio.cli.completion_table"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("resu", ["resume"]),
        ("ask --max-c", ["--max-calls"]),
        ("ask --method p", ["plain-rag", "par-rag"]),
        ("ask --method ch", ["chat"]),
        ("runs fork x --method r", ["retro-rag", "ras", "report"]),
        ("methods crp", ["crp-rag"]),
        ("search --mode g", ["graph"]),
        ("runs pr", ["prune"]),
        ("runs show absent", [""]),
    ],
)
def test_words_are_completed(words: str, expected: list[str]) -> None:
    assert completed(words) == expected


@pytest.fixture
def home(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("SLEUTH_HOME", str(settings.home))
    return settings


async def test_threads_are_completed_from_the_store(home: Settings) -> None:
    async with open_store(home) as store:
        for at, (id, owner) in enumerate([("3f9a", "local"), ("3fb0", "local"), ("77b0", "local"), ("3fcc", "ann")]):
            thread = Thread(
                id=id, owner=owner, method="ras", question=f"Who\nis {id}?", updated_at=f"2026-01-0{at + 1}"
            )
            await store.threads.add(thread)
    assert completion.threads("3f") == [("3fb0", "Who is 3fb0?"), ("3f9a", "Who is 3f9a?")]
    assert completed("runs show 3f") == ["3fb0", "3f9a"]
    assert completed("runs delete 77b0 3f") == ["3fb0", "3f9a"]
    assert completed("resume 7") == ["77b0"]


def test_documents_are_completed_from_the_catalogue(home: Settings) -> None:
    home.home.mkdir()
    catalogue = Catalogue(catalogue_url(home.home, None), owner="local", collection="default")
    catalogue.put_documents([entry("papers/light.txt", "x", title="The light"), entry("papers/lamp.txt", "y")])
    catalogue.close()
    assert completion.documents("papers/li") == [("papers/light.txt", "The light")]
    assert completed("docs show papers/") == ["papers/lamp.txt", "papers/light.txt"]


@pytest.mark.parametrize("content", [None, "not a database"])
def test_unreadable_databases_complete_nothing(content: str | None, home: Settings) -> None:
    if content:
        home.home.mkdir()
        (home.home / "runs.sqlite").write_text(content * 100)
    assert completion.threads("") == []


def test_home_of_the_settings_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLEUTH_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sleuth.toml").write_text(f"home = '{tmp_path / 'here'}'\ncollection = 'letters'\n")
    (tmp_path / "here").mkdir()
    catalogue = Catalogue(catalogue_url(tmp_path / "here", None), owner="local", collection="letters")
    catalogue.put_documents([entry("one.txt", "x")])
    catalogue.close()
    assert [id for id, _ in completion.documents("o")] == ["one.txt"]
