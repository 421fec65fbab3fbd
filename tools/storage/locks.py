"""Locks on files. The operating system releases them when their process ends, even if it was killed.

`HomeLock` locks a SLEUTH_HOME: many processes may ask and search simultaneously, also while one ingests or deletes.
Each holder keeps a file that names it, so that the error of a process that cannot get the lock names the process to
wait for. That file is locked too: a process id alone proves nothing, since in a container each process may have the
same one.
"""

import asyncio
import json
import logging
import math
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Literal
from uuid import uuid4

from filelock import AsyncReadWriteLock, BaseFileLock, FileLock, Timeout

from sleuth.tools.errors import StoreBusy, StoreError
from sleuth.tools.retry import retry
from sleuth.tools.storage.disk import remedy_of
from sleuth.tools.types import now

LockMode = Literal["search", "shared", "exclusive", "alone"]
"""What a process may do with a home, the least demanding first: search it; search it while its documents stay as they
are; change its documents; use it without any other process."""

_FILES: dict[LockMode, dict[str, Literal["read", "write"]]] = {
    "search": {"home.db": "read"},
    "shared": {"home.db": "read", "documents.db": "read"},
    "exclusive": {"home.db": "read", "documents.db": "write"},
    "alone": {"home.db": "write"},
}
"""The files that a mode locks, each for many processes or for one."""

_log = logging.getLogger(__name__)


def is_stale(path: Path) -> bool:
    """Return whether no process holds the lock on a file; False if that cannot be examined."""
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except OSError:  # including filelock's Timeout
        return False
    lock.release()
    return True


class HomeLock:
    """The lock of one process on a SLEUTH_HOME, shared by all its activities.

    The process holds the mode that its most demanding activity needs, and nothing while it is idle. Activities of one
    process do not exclude each other. An `IndexSet` guards its indexes with a lock of its own.
    """

    def __init__(self, home: Path, command: str) -> None:
        """Set the folder, and the name of this process in the messages of others."""
        self._folder = home / "locks"
        self._command = command
        self._changing = asyncio.Lock()
        self._users: dict[LockMode, int] = dict.fromkeys(_FILES, 0)
        self._held: LockMode | None = None
        self._lock = AsyncExitStack()

    @asynccontextmanager
    async def hold(
        self, mode: LockMode, *, wait: float = 0.0, on_wait: Callable[[Exception], None] = lambda _: None
    ) -> AsyncIterator[None]:
        """Hold at least `mode`.

        Args:
            mode: what the activity does with the home.
            wait: the most seconds to wait for other processes; a wait is logged once.
            on_wait: is called once, with the error that names the process to wait for.

        Raises:
            StoreBusy: another process still holds it in a way that excludes `mode`; the message names that process.
            StoreError: the folder cannot be written.
        """

        def log(error: Exception) -> None:
            limit = f" up to {wait:g} s" if wait < math.inf else ""
            _log.warning("%s Waiting%s.", str(error).partition(" Wait until")[0], limit)
            on_wait(error)

        await retry(
            lambda: self._add_user(mode),
            lambda error: isinstance(error, StoreBusy),
            pause=0.5,
            max_wait=wait,
            on_wait=log,
        )
        try:
            yield
        finally:
            await asyncio.shield(self._release(mode))

    async def _add_user(self, mode: LockMode) -> None:
        async with self._changing:
            self._users[mode] += 1
            try:
                await self._adjust()
            except BaseException:
                await self._remove_user(mode)
                raise

    async def _release(self, mode: LockMode) -> None:
        async with self._changing:
            await self._remove_user(mode)

    async def _remove_user(self, mode: LockMode) -> None:
        """Release what no remaining user needs.

        Another process may acquire the lock in between. Runs that continue are safe: both processes respect the lock of
        the indexes, and the next user waits for the other process.
        """
        self._users[mode] -= 1
        with suppress(StoreBusy):
            await self._adjust()

    async def _adjust(self) -> None:
        needed = next((mode for mode in reversed(_FILES) if self._users[mode]), None)
        if needed == self._held:
            return
        self._held = None
        await self._lock.aclose()
        if needed is None:
            return
        await self._lock.enter_async_context(_locked(self._folder, needed, self._command))
        self._held = needed


def hold(home: Path, mode: LockMode, *, command: str, wait: float = 0.0) -> AbstractAsyncContextManager[None]:
    """Hold the lock on a SLEUTH_HOME for one activity, as `HomeLock.hold` does."""
    return HomeLock(home, command).hold(mode, wait=wait)


def changing_processes(home: Path) -> str:
    """Return the processes that change the documents of a home, in words; empty if there are none."""
    return "; ".join(_read_holders(home / "locks", "exclusive"))


@asynccontextmanager
async def _locked(folder: Path, mode: LockMode, command: str) -> AsyncIterator[None]:
    """Lock a home, with a file that names this process."""
    async with AsyncExitStack() as stack:
        try:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
            for name, right in _FILES[mode].items():
                lock = await asyncio.to_thread(AsyncReadWriteLock, folder / name, blocking=False, is_singleton=False)
                stack.push_async_callback(lock.close)
                await (lock.acquire_read() if right == "read" else lock.acquire_write())
            card = await asyncio.to_thread(_write_holder_file, folder, mode, command)
        except Timeout:  # a kind of OSError
            holders = await asyncio.to_thread(_read_holders, folder)
            raise StoreBusy(
                f"{folder.parent} is in use by {'; '.join(holders) or 'another process'}. "
                "Wait until it is done, then try again."
            ) from None
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"{folder.parent} cannot be written: {error}. "
                + remedy_of(folder, "Choose another folder with SLEUTH_HOME or --out.")
            ) from error
        stack.push_async_callback(asyncio.to_thread, _remove_holder_file, card)
        yield


def _write_holder_file(folder: Path, mode: LockMode, command: str) -> BaseFileLock:
    _read_holders(folder)
    path = folder / f"{os.getpid()}-{uuid4().hex[:8]}.json"
    card = FileLock(path, thread_local=False)
    card.acquire()
    with suppress(OSError):  # on a full disk the lock works all the same, and searching and deleting need it
        path.write_text(json.dumps({"pid": os.getpid(), "command": command, "since": now(), "mode": mode}), "utf-8")
    return card


def _remove_holder_file(card: BaseFileLock) -> None:
    with suppress(PermissionError):  # some systems keep a file that is open
        Path(card.lock_file).unlink(missing_ok=True)
    card.release()


def _read_holders(folder: Path, mode: LockMode | None = None) -> list[str]:
    """Return the holders of a home lock, in one mode or any, and remove the files of processes that have died."""
    holders = []
    for path in sorted(folder.glob("*.json")):
        with suppress(OSError, ValueError, LookupError):  # its process is just creating or removing it
            holder = json.loads(path.read_text(encoding="utf-8"))
            if is_stale(path):
                path.unlink(missing_ok=True)
            elif mode in (None, holder["mode"]):
                holders.append(f"`{holder['command']}` (process {holder['pid']}, since {holder['since']})")
    return holders
