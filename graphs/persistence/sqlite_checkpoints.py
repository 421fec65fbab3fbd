"""Checkpoints in SQLite as LangGraph's saver writes them, in insertion order, each in one call to a thread."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Self, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import ERROR
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.checkpoint.sqlite.utils import search_where

_BUSY_SECONDS = 30
_RETURN = "__return__"
"""Channel to which LangGraph writes the result of a task."""

# Triggers number a checkpoint in its own transaction for any insert. `put` replaces a row that exists;
# a BEFORE trigger still finds that row, so that a rewritten checkpoint keeps its number, or remains without one.
_PLACE = "thread_id, checkpoint_ns, checkpoint_id"
_NEW, _OLD = (", ".join(f"{row}.{column}" for column in _PLACE.split(", ")) for row in ("NEW", "OLD"))
_NUMBERS = (
    f"""CREATE TABLE IF NOT EXISTS sleuth_checkpoint_numbers (number INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, UNIQUE ({_PLACE}))""",
    f"""CREATE TRIGGER IF NOT EXISTS sleuth_number_checkpoint BEFORE INSERT ON checkpoints
    WHEN NOT EXISTS (SELECT 1 FROM checkpoints WHERE ({_PLACE}) = ({_NEW}))
    BEGIN INSERT INTO sleuth_checkpoint_numbers ({_PLACE}) VALUES ({_NEW}); END""",  # noqa: S608 - ours
    f"""CREATE TRIGGER IF NOT EXISTS sleuth_forget_checkpoint AFTER DELETE ON checkpoints
    BEGIN DELETE FROM sleuth_checkpoint_numbers WHERE ({_PLACE}) = ({_OLD}); END""",  # noqa: S608 - ours
)

NUMBERED = f"checkpoints LEFT JOIN sleuth_checkpoint_numbers USING ({_PLACE})"
"""The checkpoints of a SQLite store with their numbers; NULL for those that an older release wrote."""

Place = tuple[str, str, str, int | None]
"""A checkpoint: its thread, namespace, id and number."""

T = TypeVar("T")


def drop_partial_writes(writes: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    """Return the writes of a task; of a node that failed or was stopped, only the error.

    LangGraph saves the other writes too, and takes a node with any write for finished when the run is resumed. A node
    that was stopped between its update and its router's choice would lead nowhere, and the run would be lost. A task
    inside a node that was stopped after its return counts as finished: a model call is not sent twice.
    """
    failed = any(channel == ERROR and isinstance(value, BaseException) for channel, value in writes)
    if not failed or any(channel == _RETURN for channel, _ in writes):
        return writes
    return [(channel, value) for channel, value in writes if channel == ERROR]


class InsertionOrderSaver(BaseCheckpointSaver[str]):
    """Base of our savers: checkpoints in the order in which they were inserted.

    LangGraph's savers order checkpoints by their ids, which contain the time. A clock that is behind would place a new
    checkpoint before older ones. Checkpoints without a number were written by an older release: they come first, in
    the order of their ids.
    """

    async def _places(
        self, config: RunnableConfig | None, filter: dict[str, Any] | None, limit: int | None
    ) -> list[Place]:
        """Return the matching checkpoints, the last inserted first."""
        raise NotImplementedError

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a config names, or the last one of its thread."""
        if get_checkpoint_id(config):
            return await super().aget_tuple(config)
        latest = {"checkpoint_ns": "", **config["configurable"]}
        places = await self._places({"configurable": latest}, None, 1)
        return await super().aget_tuple(_config(places[0])) if places else None

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield the matching checkpoints, the last inserted first."""
        places = await self._places(config, filter, limit if before is None else None)
        if before is not None:
            position = await self._position(config, before)
            places = [place for place in places if _order(place) < position][:limit]
        for place in places:
            if found := await self.aget_tuple(_config(place)):
                yield found

    async def _position(self, config: RunnableConfig | None, before: RunnableConfig) -> tuple[int, str]:
        """Return the position of a checkpoint in any namespace: a replay names one of the outer graph."""
        id, thread = str(get_checkpoint_id(before)), ((config or before)["configurable"]).get("thread_id")
        every = await self._places({"configurable": {"thread_id": thread}} if thread else None, None, None)
        return max((_order(place) for place in every if place[2] == id), default=(0, id))


def _config(place: Place) -> RunnableConfig:
    return {"configurable": dict(zip(("thread_id", "checkpoint_ns", "checkpoint_id"), place, strict=False))}


def _order(place: Place) -> tuple[int, str]:
    *_, id, number = place
    return number or 0, id


class SqliteCheckpoints(InsertionOrderSaver, AsyncSqliteSaver):
    """SQLite checkpointer that reads as LangGraph's own does, and writes through the synchronous one in one thread.

    LangGraph's asynchronous saver switches to its thread three or four times per write, about thirteen times per node,
    which takes longer than the writing itself (`benchmarks/overhead.py`).
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
        """Open the checkpoints in a file, created the first time, with these pragmas for each connection."""

        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(file, timeout=_BUSY_SECONDS, check_same_thread=False)
            for pragma in pragmas:
                connection.execute(pragma)
            return connection

        async with aiosqlite.connect(file, timeout=_BUSY_SECONDS) as reading:
            for pragma in pragmas:
                await reading.execute(pragma)
            # The thread ends before its connection is closed: it continues a write whose task was cancelled, and SQLite
            # crashes the process if a connection is closed during a statement.
            with (
                closing(await asyncio.to_thread(connect)) as connection,
                ThreadPoolExecutor(1, "checkpoints") as thread,
            ):
                saver = cls(reading, SqliteSaver(connection, serde=serde), thread, serde)
                await saver.setup()
                for statement in _NUMBERS:
                    await reading.execute(statement)
                await reading.commit()
                yield saver

    async def _places(
        self, config: RunnableConfig | None, filter: dict[str, Any] | None, limit: int | None
    ) -> list[Place]:
        where, values = search_where(config, filter)
        query = f"""SELECT thread_id, checkpoint_ns, checkpoint_id, number FROM {NUMBERED} {where}
            ORDER BY number DESC, checkpoint_id DESC LIMIT ?"""  # noqa: S608 - no value is part of it
        # In one step: a cursor of a cancelled read would stay open, and the next read would see the data of its time.
        async with self.lock, self.conn.execute_fetchall(query, (*values, -1 if limit is None else limit)) as rows:
            return [(str(thread), str(ns), str(id), number) for thread, ns, id, number in rows]

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._writing.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task."""
        loop = asyncio.get_running_loop()
        kept = drop_partial_writes(writes)
        await loop.run_in_executor(self._thread, self._writing.put_writes, config, kept, task_id, task_path)

    async def transact(self, change: Callable[[sqlite3.Cursor], T]) -> T:
        """Run `change` in one transaction of the writing connection."""

        def changed() -> T:
            with self._writing.cursor(transaction=False) as cursor, self._writing.conn:
                return change(cursor)

        return await asyncio.get_running_loop().run_in_executor(self._thread, changed)
