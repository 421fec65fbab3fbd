"""Checkpoints in Postgres, as LangGraph keeps them, but for what a task leaves that has failed or was stopped."""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from sleuth.graphs.checkpoints import counted


class PostgresCheckpoints(AsyncPostgresSaver):
    """Needs the extra `postgres`."""

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Saves what a task has left for a checkpoint."""
        await super().aput_writes(config, counted(writes), task_id, task_path)
