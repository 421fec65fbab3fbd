"""The locks of a store for a run whose own lease its job holds."""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from sleuth.graphs.persistence import ThreadLocks


@dataclass(frozen=True)
class OtherThreadLocks:
    """Takes the locks of all threads but one, which is held already."""

    locks: ThreadLocks
    thread: str

    def hold(self, id: str) -> AbstractAsyncContextManager[None]:
        """Hold a thread, unless it is the one that is held."""
        return nullcontext() if id == self.thread else self.locks.hold(id)

    async def held(self, ids: Collection[str]) -> set[str]:
        """Return those of the threads that somebody holds."""
        return await self.locks.held(ids)

    async def forget(self, id: str) -> None:
        """Remove what holding a thread has left."""
        await self.locks.forget(id)

    def token(self, id: str) -> str | None:
        """Return the fencing token of a thread."""
        return self.locks.token(id)
