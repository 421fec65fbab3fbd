"""Runs in Postgres whose stored values name code: nothing of it runs."""

from pathlib import Path

import malicious
import pytest
from sqlalchemy import text
from stored_runs import finished, open_runs, own_settings

from sleuth.graphs.runs.history import list_checkpoints
from sleuth.graphs.runs.pruning import prune, remove_runs
from sleuth.tools.errors import StoreDamaged


@pytest.mark.postgres
@pytest.mark.parametrize("table", ["checkpoint_blobs", "checkpoint_writes"])
@pytest.mark.parametrize("name", ["os.system", "lc2"])
async def test_postgres_rows_run_no_code_and_can_be_deleted(
    tmp_path: Path, postgres_url: str, table: str, name: str
) -> None:
    marker = tmp_path / "ran"
    kind, body = malicious.values(marker)[name]
    async with open_runs(own_settings(tmp_path, postgres_url)) as runs:
        id, _ = await finished(runs)
        with runs.store.engine.execution_options(sleuth_write=True).begin() as connection:
            change = text(f"UPDATE {table} SET type = :kind, blob = :body WHERE thread_id = :id")
            assert connection.execute(change, {"kind": kind, "body": body, "id": id}).rowcount
        with pytest.raises(StoreDamaged):
            await list_checkpoints(runs, id)
        with pytest.raises(StoreDamaged):
            await prune(runs, older_than=None, keep_last=1)
        await remove_runs(runs, id)
    assert not marker.exists()
