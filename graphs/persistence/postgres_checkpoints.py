"""Checkpoints in Postgres as LangGraph's saver writes them, by the process that has the thread and no other."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg_pool import AsyncConnectionPool

from sleuth.graphs.persistence.checkpoints import drop_partial_writes
from sleuth.graphs.persistence.thread_locks import lost

_HELD = "SELECT 1 FROM sleuth_leases WHERE thread = %s AND token = %s FOR SHARE"


class PostgresCheckpoints(AsyncPostgresSaver):
    """Postgres checkpointer whose writes are fenced; needs the extra `postgres`."""

    fence: Callable[[str], str | None] = staticmethod(lambda _thread: None)
    """Return the token of a thread, None without one; writes are refused once the thread has another one."""

    async def aput(self, config: RunnableConfig, *checkpoint: Any) -> RunnableConfig:  # noqa: ANN401 - those of the base
        """Save a checkpoint; raise ThreadBusy if another process has taken the thread."""
        async with self._fenced(config) as saver:
            return await saver.aput(config, *checkpoint)

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
