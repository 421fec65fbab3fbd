"""Checkpoints in SQLite as LangGraph's saver writes them, each call in the same thread, and their safe reading.

LangGraph's own serializer imports and calls the name that a stored value carries, so that opening a file of runs could
run any program. `CheckpointSerializer` creates objects of the types listed here and refuses all others.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from functools import partial, wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Self, TypeVar

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_DELTA_SNAPSHOT,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.checkpoint.serde.types import ERROR
from langgraph.checkpoint.sqlite import SqliteSaver

from sleuth.tools.errors import StoreDamaged
from sleuth.tools.langgraph_internals import RETURN, DeltaSnapshot

# A commit survives the end of this process. A power cut may lose the last commits, never an earlier one, and a run
# resumes from what is left. Waiting for the disk at each commit, about five per node, would take longer than all other
# work of ours (`benchmarks/overhead.py`).
UNSYNCED = "PRAGMA synchronous=NORMAL"

_BUSY_SECONDS = 30

T = TypeVar("T")


def drop_partial_writes(writes: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    """Return the writes of a task; of a node that failed or was stopped, only the error.

    LangGraph saves the other writes too, and takes a node with any write for finished when the run is resumed. A node
    that was stopped between its update and its router's choice would lead nowhere, and the run would be lost. A task
    inside a node that was stopped after its return counts as finished: a model call is not sent twice.
    """
    failed = any(channel == ERROR and isinstance(value, BaseException) for channel, value in writes)
    if not failed or any(channel == RETURN for channel, _ in writes):
        return writes
    return [(channel, value) for channel, value in writes if channel == ERROR]


def _in_thread(method: Callable[..., T]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Return the asynchronous form of a method of the saver."""

    @wraps(method)
    async def call(self: "SqliteCheckpoints", *arguments: Any, **options: Any) -> T:  # noqa: ANN401 - those of the method
        return await self._call(lambda: method(self, *arguments, **options))

    return call


class SqliteCheckpoints(SqliteSaver):
    """SQLite checkpointer whose calls are made one after the other in one thread.

    LangGraph's asynchronous saver switches to its thread three or four times per write, about thirteen times per node,
    which takes longer than the writing itself (`benchmarks/overhead.py`).
    """

    def __init__(self, connection: sqlite3.Connection, thread: ThreadPoolExecutor, serde: SerializerProtocol) -> None:
        super().__init__(connection, serde=serde)
        self._thread = thread

    @classmethod
    @asynccontextmanager
    async def open(cls, file: Path, serde: SerializerProtocol) -> AsyncIterator[Self]:
        """Open the checkpoints in a file, created the first time."""
        connect = partial(sqlite3.connect, file, timeout=_BUSY_SECONDS, check_same_thread=False)
        # The thread ends before its connection is closed: it continues a write whose task was cancelled, and SQLite
        # crashes the process if a connection is closed during a statement.
        with closing(await asyncio.to_thread(connect)) as connection, ThreadPoolExecutor(1, "checkpoints") as thread:
            saver = cls(connection, thread, serde)
            await saver._call(lambda: connection.execute(UNSYNCED))
            await saver._call(saver.setup)
            yield saver

    async def alist(self, *place: Any, **filters: Any) -> AsyncIterator[CheckpointTuple]:  # noqa: ANN401 - those of the base
        """Yield the matching checkpoints, the latest first."""
        for checkpoint in await self._call(lambda: [*self.list(*place, **filters)]):
            yield checkpoint

    aget_tuple = _in_thread(SqliteSaver.get_tuple)
    aput = _in_thread(SqliteSaver.put)
    adelete_thread = _in_thread(SqliteSaver.delete_thread)
    aget_delta_channel_history = _in_thread(SqliteSaver.get_delta_channel_history)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task."""
        await self._call(lambda: self.put_writes(config, drop_partial_writes(writes), task_id, task_path))

    async def transact(self, change: Callable[[sqlite3.Cursor], T]) -> T:
        """Run `change` in one transaction."""

        def changed() -> T:
            with self.cursor(transaction=False) as cursor, self.conn:
                return change(cursor)

        return await self._call(changed)

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


_MESSAGES = ("ai.AIMessage", "human.HumanMessage", "modifier.RemoveMessage", "system.SystemMessage", "tool.ToolMessage")
TYPES = frozenset(
    {
        "langgraph.types.Interrupt",
        "langgraph.types.Send",
        *(f"langchain_core.messages.{name}" for name in _MESSAGES),
    }
)
"""Every type whose objects a checkpoint may contain, next to JSON and LangGraph's snapshots of channels."""

_OPTION = ormsgpack.OPT_NON_STR_KEYS
_REMEDY = "Put a backup of the runs in place, or remove this run."


class CheckpointSerializer(JsonPlusSerializer):
    """Serializer that writes as LangGraph's does and reads only the types of `TYPES`."""

    def __init__(self) -> None:
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:  # noqa: ANN401 - as the base has it
        """Return the value of a stored type and body.

        Raises:
            StoreDamaged: the body cannot be decoded, or contains an object of a type that is not in `TYPES`.
        """
        kind, body = data
        if kind == "null":
            return None
        if kind != "msgpack":
            raise StoreDamaged(f"A value is stored as {kind!r}, not as msgpack, and was not read. {_REMEDY}")
        refused: list[StoreDamaged] = []  # ormsgpack replaces what its hook raises by a ValueError

        def revive(code: int, data: bytes) -> Any:  # noqa: ANN401 - any value
            value = ormsgpack.unpackb(data, ext_hook=revive, option=_OPTION)
            try:
                return _revived(code, value)
            except StoreDamaged as error:
                refused.append(error)
                raise

        try:
            return ormsgpack.unpackb(body, ext_hook=revive, option=_OPTION)
        except ValueError as error:
            raise refused[0] if refused else StoreDamaged(f"A value cannot be decoded ({error}). {_REMEDY}") from error


def _revived(code: int, value: Any) -> Any:  # noqa: ANN401 - any value
    if code == EXT_DELTA_SNAPSHOT:
        return DeltaSnapshot(value)
    if not isinstance(value, list | tuple) or len(value) < 3:
        raise StoreDamaged(f"A value has the unknown format {code} and was not read. {_REMEDY}")
    path = f"{value[0]}.{value[1]}"
    if path not in TYPES or code not in (EXT_CONSTRUCTOR_POS_ARGS, EXT_CONSTRUCTOR_KW_ARGS, EXT_PYDANTIC_V2):
        raise StoreDamaged(
            f"A value has the type {path}, which checkpoints of this release do not contain. It was not loaded, "
            "and no code of it ran. Upgrade sleuth if a newer release wrote it; do not trust the file otherwise."
        )
    kind = resolve_name(path)
    return kind(*value[2]) if code == EXT_CONSTRUCTOR_POS_ARGS else kind(**value[2])
