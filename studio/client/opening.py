"""An open collection, locked against other processes; a module of its own, which imports no LangGraph."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sleuth.tools.collection import Collection
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import LockMode, hold


@asynccontextmanager
async def open_collection(settings: Settings, mode: LockMode, *, command: str) -> AsyncIterator[Collection]:
    """Open the collection of a home; `command` is the name of this process in the lock on the home.

    Raises:
        StoreBusy: another process holds the lock.
        EmbedderChanged: the collection was built with another embedder.
    """
    async with (
        hold(settings.home, mode, command=command, wait=settings.wait),
        await Collection.open(settings) as collection,
    ):
        yield collection
