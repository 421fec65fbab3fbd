"""Runs in Postgres whose stored values name code: nothing of it runs."""

import uuid
from pathlib import Path

import malicious
import pytest
from four_hops import QUESTION, InProcess, Shelf
from sqlalchemy import text

from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import list_checkpoints
from sleuth.graphs.runs.pruning import prune, remove_runs
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.errors import StoreDamaged
from sleuth.tools.settings import Settings


async def finished(settings: Settings, id: str) -> None:
    async with open_store(settings) as store:
        runs = RunService(store, Services(model=InProcess(), retriever=Shelf()))
        await last_answer(runs.run(await runs.start(QUESTION, "par-rag", thread=id)))


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
