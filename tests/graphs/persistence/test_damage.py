"""Damaged cells in the store of runs: errors that name the run, and no harm to other runs."""

import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scenes import finish

from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.runs.history import export_run, fork_run, list_checkpoints
from sleuth.graphs.runs.model_calls import load_checkpoint
from sleuth.graphs.runs.pruning import prune, remove_runs
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import StoreDamaged
from sleuth.tools.settings import Settings


@pytest.fixture
def file(settings: Settings) -> Path:
    return settings.home / "runs.sqlite"


@pytest.fixture
def settings(settings: Settings, finished_home: Path) -> Settings:
    """A home with two finished runs: `good`, and `bad`, which the tests damage."""
    shutil.copytree(finished_home, settings.home)
    return settings


def execute(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(statement).rowcount


def damage(file: Path, table: str, cell: str, value: object) -> None:
    """Put a value into a column of all rows of the run `bad`."""
    key = "id" if table == "sleuth_threads" else "thread_id"
    execute(file, f"UPDATE {table} SET {cell} = {value} WHERE {key} = 'bad'")


ROWS = {
    "options-text": ("options", "'{broken'"),
    "options-list": ("options", "'[1]'"),
    "options-number": ("options", "7"),
    "options-deep": ("options", f"'{'[' * 20_000}'"),
    "options-hop": ("options", """'{"hop": "x"}'"""),
    "options-values": ("options", """'{"values": 1, "profile": "default", "budget": {}}'"""),
    "status": ("status", "'zzz'"),
    "question-blob": ("question", "x'ff00'"),
    "method-number": ("method", "7.5"),
}

CELLS = {
    "checkpoint-garbage": ("checkpoints", "checkpoint", "x'c1ff00'"),
    "checkpoint-number": ("checkpoints", "checkpoint", "7"),
    "checkpoint-null": ("checkpoints", "checkpoint", "NULL"),
    "checkpoint-other": ("checkpoints", "checkpoint", "x'05'"),
    "checkpoint-empty": ("checkpoints", "checkpoint", "x'80'"),
    "checkpoint-type": ("checkpoints", "type", "'zzz'"),
    "checkpoint-type-utf8": ("checkpoints", "type", "CAST(x'ff41' AS TEXT)"),
    "metadata-garbage": ("checkpoints", "metadata", "x'7bff'"),
    "metadata-list": ("checkpoints", "metadata", "'[1]'"),
    "metadata-deep": ("checkpoints", "metadata", f"'{'[' * 20_000}'"),
    "write-garbage": ("writes", "value", "x'c1ff00'"),
    "write-other": ("writes", "value", "x'05'"),
    "write-type": ("writes", "type", "'pickle'"),
}

Reading = Callable[[RunService], Awaitable[Any]]
READINGS: dict[str, Reading] = {
    "history": lambda runs: list_checkpoints(runs, "bad"),
    "export": lambda runs: export_run(runs, "bad"),
    "show": lambda runs: runs.answer("bad"),
    "fork": lambda runs: fork_run(runs, "bad", at="1f0"),
    "moment": lambda runs: load_checkpoint(runs, "bad", "1f0"),
    "resume": lambda runs: finish(runs, "bad"),
}


@pytest.mark.parametrize("row", ROWS)
async def test_damaged_row_error_names_the_run(runs: RunService, file: Path, row: str) -> None:
    damage(file, "sleuth_threads", *ROWS[row])
    for reading in ("show", "resume"):
        with pytest.raises(StoreDamaged, match=r"[Rr]un bad (is damaged \(|cannot be read).*Put a backup"):
            await READINGS[reading](runs)


@pytest.mark.parametrize("cell", CELLS)
async def test_damaged_cell_error_names_the_run(runs: RunService, file: Path, cell: str) -> None:
    damage(file, *CELLS[cell])
    for read in READINGS.values():
        with pytest.raises(StoreDamaged, match=r"Run bad.* cannot be read: .* Put a backup") as raised:
            await read(runs)
        assert len(str(raised.value)) < 500


async def test_damaged_run_stops_a_prune_and_can_be_removed(runs: RunService, file: Path) -> None:
    texts = (await export_run(runs, "bad"))["texts"]
    damage(file, "checkpoints", "metadata", "'[1]'")
    with pytest.raises(StoreDamaged, match="Run bad cannot be read"):
        await prune(runs, older_than=None, keep_last=1)
    assert await runs.store.archive.load(texts) == list(texts.values())
    await remove_runs(runs, "bad")
    assert [thread.id for thread in await runs.store.threads.list_newest()] == ["good"]


@pytest.mark.parametrize("body", ["x'00ff'", "7", "'text'"])
async def test_damaged_text_is_named(runs: RunService, file: Path, body: str) -> None:
    execute(file, f"UPDATE sleuth_texts SET body = {body}, era = 'x'")
    with pytest.raises(StoreDamaged, match=r"archived text [0-9a-f]{64} cannot be read"):
        await export_run(runs, "good")
    await prune(runs, older_than=None, keep_last=1)


async def test_damaged_prune_epoch_blocks_no_prune(runs: RunService, file: Path) -> None:
    await prune(runs, older_than=None, keep_last=None)
    execute(file, "UPDATE sleuth_texts_era SET era = 'zzz'")
    await prune(runs, older_than=None, keep_last=1)


async def test_damaged_version_of_runs_is_named(store: Store, file: Path, settings: Settings) -> None:
    execute(file, "UPDATE sleuth_runs_version SET version = 'zzz'")
    with pytest.raises(StoreDamaged, match=r"version of the runs in .*runs\.sqlite is 'zzz', not a number"):
        async with open_store(settings):
            pytest.fail("it was opened")
