"""Checkpoints in SQLite, as LangGraph keeps them, each written in one go."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Self, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import ERROR
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

_BUSY_SECONDS = 30
_RETURN = "__return__"
"""Where LangGraph writes what a task of a node's returns."""

T = TypeVar("T")


def counted(writes: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    """Of a node that has failed or was stopped only the error: what it had written until then does not count.

    LangGraph saves that too, and when the run is resumed takes a node with anything written for finished. One that was
    stopped between its update and its router's choice would lead nowhere, and the run be lost. A task of a node's that
    was stopped after it had returned has returned: a model call is not sent twice.
    """
    failed = any(channel == ERROR and isinstance(value, BaseException) for channel, value in writes)
    if not failed or any(channel == _RETURN for channel, _ in writes):
        return writes
    return [(channel, value) for channel, value in writes if channel == ERROR]


class SqliteCheckpoints(AsyncSqliteSaver):
    """Reads as LangGraph's own saver, and writes through its synchronous one in a thread of its own.

    The asynchronous saver goes to its thread and back three or four times for each write, some thirteen times for a
    node; that took longer than the writing (`benchmarks/overhead.py`).
    """

    def __init__(
        self, reading: aiosqlite.Connection, writing: SqliteSaver, thread: ThreadPoolExecutor, serde: SerializerProtocol
    ) -> None:
        super().__init__(reading, serde=serde)
        self._writing = writing
        self._thread = thread

    @classmethod
    @asynccontextmanager
    async def open(cls, file: Path, serde: SerializerProtocol, *pragmas: str) -> AsyncIterator[Self]:
        """The checkpoints in a file, made at the first time, over connections that these pragmas hold for."""

        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(file, timeout=_BUSY_SECONDS, check_same_thread=False)
            for pragma in pragmas:
                connection.execute(pragma)
            return connection

        async with aiosqlite.connect(file, timeout=_BUSY_SECONDS) as reading:
            for pragma in pragmas:
                await reading.execute(pragma)
            # The thread ends before its connection is closed: it goes on with a write whose task was cancelled, and
            # SQLite crashes the process where a connection is closed under a running statement.
            with (
                closing(await asyncio.to_thread(connect)) as connection,
                ThreadPoolExecutor(1, "checkpoints") as thread,
            ):
                saver = cls(reading, SqliteSaver(connection, serde=serde), thread, serde)
                await saver.setup()
                yield saver

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Saves a checkpoint."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._writing.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Saves what a task has left for a checkpoint."""
        loop = asyncio.get_running_loop()
        left = counted(writes)
        await loop.run_in_executor(self._thread, self._writing.put_writes, config, left, task_id, task_path)

    async def transact(self, change: Callable[[sqlite3.Cursor], T]) -> T:
        """A transaction of the writing connection: all that `change` does, or nothing."""

        def changed() -> T:
            with self._writing.cursor(transaction=False) as cursor, self._writing.conn:
                return change(cursor)

        return await asyncio.get_running_loop().run_in_executor(self._thread, changed)
