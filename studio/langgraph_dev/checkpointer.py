"""The checkpointer of `langgraph dev` (langgraph.json): a SQLite file, so that a kill loses no checkpoint.

The server stores its list of threads every ten seconds. After a kill, a younger thread still has its checkpoints:
create the thread again with the same id to use them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.base import BaseCheckpointSaver

from sleuth.graphs.persistence import CheckpointSerializer, SqliteCheckpoints
from sleuth.tools.settings import Settings


@asynccontextmanager
async def saver() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpointer, a file of its own in SLEUTH_HOME: the server's threads are not in `sleuth runs`."""
    settings = await asyncio.to_thread(Settings)
    await asyncio.to_thread(settings.home.mkdir, parents=True, exist_ok=True)
    async with SqliteCheckpoints.open(settings.home / "studio-checkpoints.sqlite", CheckpointSerializer()) as made:
        yield made
