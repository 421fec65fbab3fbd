"""What one server holds on SLEUTH_HOME, where runs and ingests go on side by side.

Between processes an ingest excludes runs. Within this one it need not: a `Library` searches and writes under one lock
of its own. So the server holds as much as its strongest activity needs, and nothing while it is idle: then documents
can also be read in from the command line.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from sleuth.tools.errors import StoreBusy
from sleuth.tools.storage import LockMode, hold

AGAIN = 0.5
"""Seconds between two attempts while another process holds the lock."""


class Door:
    """Counts who is inside, and takes or changes the lock as the first comes or the last one leaves."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._turn = asyncio.Lock()
        self._inside: dict[LockMode, int] = {"shared": 0, "exclusive": 0}
        self._held: LockMode | None = None
        self._lock = AsyncExitStack()

    @asynccontextmanager
    async def open(self, mode: LockMode, *, patience: float = 0.0) -> AsyncIterator[None]:
        """Holds at least `mode` as long as the block lasts; waits up to `patience` seconds for other processes.

        Raises:
            StoreBusy: another process excludes it; says which.
        """
        until = time.monotonic() + patience
        while True:
            try:
                await self._enter(mode)
                break
            except StoreBusy:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(AGAIN)
        try:
            yield
        finally:
            await asyncio.shield(self._leave(mode))

    async def _enter(self, mode: LockMode) -> None:
        async with self._turn:
            self._inside[mode] += 1
            try:
                await self._adjust()
            except BaseException:
                self._inside[mode] -= 1
                await self._regain()
                raise

    async def _leave(self, mode: LockMode) -> None:
        async with self._turn:
            self._inside[mode] -= 1
            await self._regain()

    async def _regain(self) -> None:
        """Back to what those inside need.

        Another process may have come in between; runs that go on beside it are safe, since both keep the order of the
        indexes' own lock, and the next one that enters waits for it.
        """
        with suppress(StoreBusy):
            await self._adjust()

    async def _adjust(self) -> None:
        needed: LockMode | None = (
            "exclusive" if self._inside["exclusive"] else "shared" if self._inside["shared"] else None
        )
        if needed == self._held:
            return
        self._held = None
        await self._lock.aclose()
        if needed is not None:
            await self._lock.enter_async_context(hold(self._home, needed, command="sleuth serve"))
        self._held = needed
