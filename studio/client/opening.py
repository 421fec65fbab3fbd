"""Who has opened a collection or a `Sleuth`: a process, by a lock and an event loop. Imports no LangGraph."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import LockMode, hold


@dataclass(frozen=True, slots=True)
class Opener:
    """The event loop and the process that opened connections; of those that create it by default."""

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    process: int = field(default_factory=os.getpid)

    def is_forked(self) -> bool:
        """Return whether this process is a fork of the one that opened the connections."""
        return os.getpid() != self.process

    def check(self) -> None:
        """Raise UsageError in a forked process: it lacks the threads of the event loop and connections of its own."""
        if self.is_forked():
            raise UsageError(
                f"This Sleuth was opened in process {self.process}, and cannot be used in process {os.getpid()}, "
                "which was forked from it. Call `sleuth.open` in the new process."
            )


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
