"""Runs whose stored values name code, opened by the command line and out of Postgres: nothing of it runs."""

import sqlite3
import uuid
from pathlib import Path

import malicious
import pytest
from cli_process import sleuth
from four_hops import QUESTION, InProcess, Shelf, four_hops
from recording_proxy import proxying
from scripted_backend import Scripted
from sqlalchemy import text

from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import list_checkpoints
from sleuth.graphs.runs.pruning import prune, remove_runs
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.errors import StoreDamaged
from sleuth.tools.settings import Settings

LATEST = "WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)"


async def finished(settings: Settings, id: str) -> None:
    async with open_store(settings) as store:
        runs = RunService(store, Services(model=InProcess(), retriever=Shelf()))
        await last_answer(runs.run(await runs.start(QUESTION, "par-rag", thread=id)))


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "pydantic.v2", "lc2"])
async def test_no_command_runs_the_code_that_a_checkpoint_names(tmp_path: Path, name: str) -> None:
    marker, home = tmp_path / "ran", tmp_path / "home"
    await finished(Settings(home=home, embedder="none"), "first")
    connection = sqlite3.connect(home / "runs.sqlite")
    with connection:
        stored = malicious.values(marker)[name]
        connection.execute(f"UPDATE checkpoints SET type = ?, checkpoint = ? {LATEST}", stored)
    connection.close()
    async with proxying(Scripted(four_hops)) as proxy:
        env = {"SLEUTH_HOME": str(home), "SLEUTH_MODEL_URL": proxy.url, "SLEUTH_EMBEDDER": "none"}
        for command in (["runs", "history"], ["runs", "show"], ["runs", "export"], ["resume"]):
            done = await sleuth(*command, "first", **env)
            assert (done.status, done.out) == (1, ""), command
            assert "was not read" in done.err or "not loaded" in done.err or "cannot be decoded" in done.err
            assert "Traceback" not in done.err
        assert "first" in (await sleuth("runs", "list", **env)).out
    assert not marker.exists()


@pytest.mark.postgres
@pytest.mark.parametrize("table", ["checkpoint_blobs", "checkpoint_writes"])
@pytest.mark.parametrize("name", ["os.system", "lc2"])
async def test_postgres_rows_run_no_code_and_can_be_deleted(
    tmp_path: Path, postgres_url: str, table: str, name: str
) -> None:
    marker, id = tmp_path / "ran", uuid.uuid4().hex
    settings = Settings(home=tmp_path / "home", database_url=postgres_url, owner=uuid.uuid4().hex)
    await finished(settings, id)
    kind, body = malicious.values(marker)[name]
    async with open_store(settings) as store:
        runs = RunService(store)
        with store.engine.execution_options(sleuth_write=True).begin() as connection:
            change = text(f"UPDATE {table} SET type = :kind, blob = :body WHERE thread_id = :id")
            assert connection.execute(change, {"kind": kind, "body": body, "id": id}).rowcount
        with pytest.raises(StoreDamaged):
            await list_checkpoints(runs, id)
        with pytest.raises(StoreDamaged):
            await prune(runs, older_than=None, keep_last=1)
        await remove_runs(runs, id)
    assert not marker.exists()
