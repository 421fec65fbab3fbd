import asyncio
import sqlite3
import threading
import time
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


async def test_a_write_whose_task_was_cancelled_is_finished_before_the_file_is_closed(tmp_path: Path) -> None:
    begun = threading.Event()

    def slowly(cursor: sqlite3.Cursor) -> None:
        cursor.execute("CREATE TABLE kept (word TEXT)")
        begun.set()
        time.sleep(0.2)  # in which the file would be closed
        cursor.execute("INSERT INTO kept VALUES ('Kestrow')")

    async with SqliteCheckpoints.open(tmp_path / "runs.sqlite", JsonPlusSerializer()) as written:
        writing = asyncio.create_task(written.transact(slowly))
        await asyncio.to_thread(begun.wait)
        writing.cancel()
    async with (
        aiosqlite.connect(tmp_path / "runs.sqlite") as connection,
        connection.execute("SELECT * FROM kept") as rows,
    ):
        assert await rows.fetchall() == [("Kestrow",)]
