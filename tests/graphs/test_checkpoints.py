from pathlib import Path

import aiosqlite
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from sleuth.graphs.checkpoints import SqliteCheckpoints


async def test_langgraphs_own_saver_reads_what_was_written(tmp_path: Path) -> None:
    serde = JsonPlusSerializer()
    async with SqliteCheckpoints.open(tmp_path / "runs.sqlite", serde, "PRAGMA synchronous=NORMAL") as written:
        start = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        config = await written.aput(start, empty_checkpoint(), {"source": "input", "step": -1}, {})
        await written.aput_writes(config, [("notes", {"1": "Kestrow"}), ("plan", None)], "task")
        found = await written.aget_tuple(start)
    async with aiosqlite.connect(tmp_path / "runs.sqlite") as connection:
        again = await AsyncSqliteSaver(connection, serde=serde).aget_tuple(start)
    assert found == again
    assert again
    assert again.config == config
    assert again.pending_writes == [("task", "notes", {"1": "Kestrow"}), ("task", "plan", None)]
