"""The lock of a server on SLEUTH_HOME, shared by all its activities.

Between processes an ingest excludes runs. Inside one process it does not: a `Collection` guards searches and writes
with a lock of its own. The server therefore holds the mode that its most demanding activity needs, and nothing while it
is idle, so that documents can also be ingested from the command line.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from sleuth.tools.errors import StoreBusy
from sleuth.tools.retry import retry
from sleuth.tools.storage import LockMode, hold


class SharedHomeLock:
    """Reference-counted home lock: acquired by the first user and released by the last."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._changing = asyncio.Lock()
        self._users: dict[LockMode, int] = {"shared": 0, "exclusive": 0}
        self._held: LockMode | None = None
        self._lock = AsyncExitStack()

    @asynccontextmanager
    async def hold(self, mode: LockMode, *, max_wait: float = 0.0) -> AsyncIterator[None]:
        """Hold at least `mode` inside the block; wait up to `max_wait` seconds for other processes.

        Raises:
            StoreBusy: another process holds a conflicting lock; the message names it.
        """
        await retry(
            lambda: self._acquire(mode), lambda error: isinstance(error, StoreBusy), pause=0.5, max_wait=max_wait
        )
        try:
            yield
        finally:
            await asyncio.shield(self._release(mode))

    async def _acquire(self, mode: LockMode) -> None:
        self._users[mode] += 1
        try:
            await self._adjust()
        except BaseException:
            await self._release(mode)
            raise

    async def _release(self, mode: LockMode) -> None:
        """Release what no remaining user needs.

        Another process may acquire the lock in between. Runs that continue are safe: both processes respect the lock of
        the indexes, and the next user waits for the other process.
        """
        self._users[mode] -= 1
        with suppress(StoreBusy):
            await self._adjust()

    async def _adjust(self) -> None:
        async with self._changing:
            modes: tuple[LockMode, ...] = ("exclusive", "shared")
            needed = next((mode for mode in modes if self._users[mode]), None)
            if needed == self._held:
                return
            self._held = None
            await self._lock.aclose()
            if needed is not None:
                await self._lock.enter_async_context(hold(self._home, needed, command="sleuth serve"))
            self._held = needed
