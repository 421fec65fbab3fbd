"""Where `langgraph dev` keeps its checkpoints (studio/langgraph.json): in a file, so that a kill loses none.

The server itself writes down every ten seconds which threads there are. One that is younger when it is killed has its
checkpoints all the same: they are found again once the thread is made anew under its id.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from sleuth.graphs.checkpoints import open_checkpoints
from sleuth.tools.settings import Settings


@asynccontextmanager
async def saver() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Checkpoints in SLEUTH_HOME, apart from those of `sleuth runs`: the server's threads are no runs of ours."""
    settings = await asyncio.to_thread(Settings)
    await asyncio.to_thread(settings.home.mkdir, parents=True, exist_ok=True)
    serde = JsonPlusSerializer(pickle_fallback=False)
    async with open_checkpoints(settings.home / "studio-checkpoints.sqlite", serde) as made:
        yield made
