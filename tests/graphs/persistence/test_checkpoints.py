import asyncio
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR

from sleuth.graphs.persistence.checkpoints import SqliteCheckpoints, drop_partial_writes

STOPPED = (ERROR, asyncio.CancelledError())
NOTES = ("notes", {"1": "found"})
RETURNED = ("__return__", {"reply": "yes"})


async def test_cancelled_write_finishes_before_the_file_is_closed(tmp_path: Path) -> None:
    begun = threading.Event()

    def slowly(connection: sqlite3.Connection) -> None:
        with connection:
            connection.execute("CREATE TABLE kept (word TEXT)")
            begun.set()
            time.sleep(0.2)  # in which the file would be closed
            connection.execute("INSERT INTO kept VALUES ('Kestrow')")

    async with SqliteCheckpoints.open(tmp_path / "runs.sqlite", JsonPlusSerializer()) as written:
        writing = asyncio.create_task(written._call(lambda: slowly(written.conn)))
        await asyncio.to_thread(begun.wait)
        writing.cancel()
    async with (
        aiosqlite.connect(tmp_path / "runs.sqlite") as connection,
        connection.execute("SELECT * FROM kept") as rows,
    ):
        assert await rows.fetchall() == [("Kestrow",)]


async def put(saver: SqliteCheckpoints, id: str, parent: str | None = None) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": parent}}
    await saver.aput(config, {**empty_checkpoint(), "id": id}, {"source": "loop", "step": 0}, {})


async def latest(saver: SqliteCheckpoints) -> str:
    found = await saver.aget_tuple({"configurable": {"thread_id": "t"}})
    assert found
    return found.checkpoint["id"]


@pytest.mark.parametrize("turns", range(1, 6))
async def test_read_after_a_cancelled_one_is_current(tmp_path: Path, turns: int) -> None:
    """The open cursor of a cancelled read once kept the next read at old data: an ended run had no answer."""
    async with SqliteCheckpoints.open(tmp_path / "runs.sqlite", JsonPlusSerializer()) as saver:
        await put(saver, "1")
        await put(saver, "2", "1")
        reading = asyncio.create_task(latest(saver))
        for _ in range(turns):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        await put(saver, "3", "2")
        assert await latest(saver) == "3"


@pytest.mark.parametrize(
    ("writes", "kept"),
    [
        pytest.param([NOTES, STOPPED], [STOPPED], id="node stopped before its router"),
        pytest.param([STOPPED, ("branch:to:review", None)], [STOPPED], id="node stopped in its router"),
        pytest.param([RETURNED, STOPPED], [RETURNED, STOPPED], id="task stopped after its return"),
        pytest.param([NOTES], [NOTES], id="finished node"),
        pytest.param([(ERROR, "a text"), NOTES], [(ERROR, "a text"), NOTES], id="error of another process"),
        pytest.param([], [], id="no writes"),
    ],
)
def test_stopped_node_keeps_only_its_error(writes: list[tuple[str, Any]], kept: list[tuple[str, Any]]) -> None:
    assert drop_partial_writes(writes) == kept
