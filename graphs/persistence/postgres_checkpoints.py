"""Checkpoints in Postgres as LangGraph's saver writes them, in insertion order and without partial writes."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    writes_sort_key,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg_pool import AsyncConnectionPool

from sleuth.graphs.persistence.sqlite_checkpoints import InsertionOrderSaver, Place, drop_partial_writes
from sleuth.graphs.persistence.thread_locks import Fence, lost

# The default numbers a checkpoint in its own transaction for any insert; a rewritten checkpoint keeps
# its number. Rows that are older than the column have none.
_NUMBERED = "SELECT 1 FROM pg_attribute WHERE attrelid = 'checkpoints'::regclass AND attname = 'sleuth_number'"
_NUMBERS = (
    "ALTER TABLE checkpoints ADD COLUMN IF NOT EXISTS sleuth_number BIGINT",
    "CREATE SEQUENCE IF NOT EXISTS sleuth_checkpoint_numbers OWNED BY checkpoints.sleuth_number",
    "ALTER TABLE checkpoints ALTER COLUMN sleuth_number SET DEFAULT nextval('sleuth_checkpoint_numbers')",
)

_HELD = "SELECT 1 FROM sleuth_leases WHERE thread = %s AND token = %s FOR SHARE"

_IN_THREAD = "thread_id = %(thread)s AND checkpoint_ns = %(ns)s"
_CHAIN = f"""
    SELECT 0 AS distance, checkpoint_id AS id, parent_checkpoint_id AS parent FROM checkpoints
    WHERE {_IN_THREAD} AND checkpoint_id = %(id)s
    UNION ALL SELECT distance + 1, checkpoint_id, parent_checkpoint_id FROM chain JOIN checkpoints
    ON checkpoint_id = chain.parent WHERE {_IN_THREAD}
"""  # noqa: S608 - ours
_ANCESTORS = f"""
    WITH RECURSIVE chain AS ({_CHAIN})
    SELECT id, checkpoint -> 'channel_versions' AS versions, checkpoint -> 'channel_values' AS inline
    FROM chain JOIN checkpoints ON checkpoint_id = id WHERE {_IN_THREAD} AND distance > 0 ORDER BY distance
"""  # noqa: S608 - ours
_BLOBS = f"""
    SELECT channel, version, type, blob FROM checkpoint_blobs
    WHERE {_IN_THREAD} AND channel = ANY(%(channels)s) AND type <> 'empty'
"""  # noqa: S608 - ours
_WRITES = f"""
    SELECT checkpoint_id AS id, channel, type, blob, task_path, task_id, idx FROM checkpoint_writes
    WHERE {_IN_THREAD} AND channel = ANY(%(channels)s) AND checkpoint_id = ANY(%(ancestors)s)
"""  # noqa: S608 - ours


class PostgresCheckpoints(InsertionOrderSaver, AsyncPostgresSaver):
    """Postgres checkpointer in insertion order; needs the extra `postgres`."""

    fence: Fence = staticmethod(lambda _thread: None)
    """Return the token of a thread; writes are refused once the thread has another one."""

    async def setup(self) -> None:
        """Create the tables and columns that are missing."""
        await super().setup()
        async with self._cursor() as cursor:
            if await (await cursor.execute(_NUMBERED)).fetchone():
                return
            async with cursor.connection.transaction():
                for statement in _NUMBERS:
                    await cursor.execute(statement)

    async def _places(
        self, config: RunnableConfig | None, filter: dict[str, Any] | None, limit: int | None
    ) -> list[Place]:
        where, values = self._search_where(config, filter)
        query = f"""SELECT thread_id, checkpoint_ns, checkpoint_id, sleuth_number FROM checkpoints {where}
            ORDER BY sleuth_number DESC NULLS LAST, checkpoint_id DESC LIMIT %s"""  # noqa: S608 - no value is part of it
        async with self._cursor() as cursor:
            await cursor.execute(query, [*values, limit])
            return [
                (row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"], row["sleuth_number"])
                for row in await cursor.fetchall()
            ]

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; raise ThreadBusy if another process has taken the thread."""
        async with self._fenced(config) as saver:
            return await saver.aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task; raise ThreadBusy if another process has taken the thread."""
        async with self._fenced(config) as saver:
            await saver.aput_writes(config, drop_partial_writes(writes), task_id, task_path)

    @asynccontextmanager
    async def _fenced(self, config: RunnableConfig) -> AsyncIterator[AsyncPostgresSaver]:
        """Yield a saver whose writes are one transaction, during which nobody else can take the thread."""
        thread = config["configurable"]["thread_id"]
        token = self.fence(thread)
        assert isinstance(self.conn, AsyncConnectionPool)
        async with self.lock, self.conn.connection() as connection, connection.transaction():
            if token and not await (await connection.execute(_HELD, [thread, token])).fetchone():
                raise lost(thread)
            yield AsyncPostgresSaver(connection, serde=self.serde)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the writes of the ancestors of a checkpoint to channels, since the last one with their whole value.

        LangGraph's own saver searches for ancestors among the smaller ids only.
        """
        target = config if get_checkpoint_id(config) else getattr(await self.aget_tuple(config), "config", None)
        if not channels or target is None:
            return {channel: {"writes": []} for channel in channels}
        place = target["configurable"]
        given = {
            "thread": place["thread_id"],
            "ns": place.get("checkpoint_ns", ""),
            "id": place["checkpoint_id"],
            "channels": [*channels],
        }
        async with self._cursor() as cursor:
            ancestors = await (await cursor.execute(_ANCESTORS, given)).fetchall()
            blobs = await (await cursor.execute(_BLOBS, given)).fetchall()
            ids = [row["id"] for row in ancestors]
            writes = await (await cursor.execute(_WRITES, given | {"ancestors": ids})).fetchall()
        return {channel: self._history(channel, ancestors, blobs, writes) for channel in channels}

    def _history(
        self,
        channel: str,
        ancestors: Sequence[Mapping[str, Any]],
        blobs: Sequence[Mapping[str, Any]],
        writes: Sequence[Mapping[str, Any]],
    ) -> DeltaChannelHistory:
        stored = {row["version"]: (row["type"], row["blob"]) for row in blobs if row["channel"] == channel}
        written = defaultdict(list)
        for row in writes:
            if row["channel"] == channel:
                written[row["id"]].append(row)
        found: list[PendingWrite] = []
        for each in ancestors:
            rows = written[each["id"]]
            rows.sort(key=lambda row: writes_sort_key(row["task_path"], row["task_id"], row["idx"]), reverse=True)
            found += [(row["task_id"], channel, self.serde.loads_typed((row["type"], row["blob"]))) for row in rows]
            inline, version = (each["inline"] or {}).get(channel), each["versions"].get(channel)
            if version in stored:
                return {"writes": found[::-1], "seed": self.serde.loads_typed(stored[version])}
            if inline is not None:
                return {"writes": found[::-1], "seed": inline}
        return {"writes": found[::-1]}
