"""Locks on files. The operating system releases them when their process ends, even if it was killed.

`hold` locks a SLEUTH_HOME: many processes may ask and search simultaneously, only one may ingest, delete or prune.
Each holder keeps a file that names it, so that the error of a process that cannot get the lock names the process to
wait for. `LivenessFile` marks its process as alive. It is locked too: a process id alone proves nothing, since in a
container each process may have the same one.
"""

import asyncio
import json
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from filelock import AsyncReadWriteLock, FileLock, Timeout

from sleuth.tools.errors import StoreBusy, StoreError
from sleuth.tools.retry import retry
from sleuth.tools.types import now

LockMode = Literal["shared", "exclusive"]

_log = logging.getLogger(__name__)


class LivenessFile:
    """A file that is locked until it is removed or its process ends."""

    def __init__(self, path: Path) -> None:
        """Create and lock the file; raise OSError if that fails."""
        self._path = path
        self._lock = FileLock(path, thread_local=False)
        self._lock.acquire()

    def remove(self) -> None:
        """Remove the file."""
        with suppress(PermissionError):  # some systems keep a file that is open
            self._path.unlink(missing_ok=True)
        self._lock.release()


def is_stale(path: Path) -> bool:
    """Return whether no process holds the lock on a file; False if that cannot be examined."""
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except OSError:  # including filelock's Timeout
        return False
    lock.release()
    return True


@asynccontextmanager
async def hold(home: Path, mode: LockMode, *, command: str, wait: float = 0.0) -> AsyncIterator[None]:
    """Hold the lock on a SLEUTH_HOME.

    Args:
        home: the folder.
        mode: `shared` to search, `exclusive` to change the collection.
        command: this process in the messages of others.
        wait: the most seconds to wait for other processes; a wait is logged once.

    Raises:
        StoreBusy: another process still holds it in a way that excludes `mode`; the message names that process.
        StoreError: the folder cannot be written.
    """
    folder = home / "locks"

    def log(error: Exception) -> None:
        _log.warning("%s Waiting up to %g s.", str(error).partition(" Wait until")[0], wait)

    lock = await retry(
        lambda: _acquire(folder, mode),
        lambda error: isinstance(error, StoreBusy),
        pause=0.5,
        max_wait=wait,
        on_wait=log,
    )
    try:
        holder = {"pid": os.getpid(), "command": command, "since": now(), "mode": mode}
        card = await asyncio.to_thread(_write_holder_file, folder, holder)
        try:
            yield
        finally:
            await asyncio.to_thread(card.remove)
    finally:
        await lock.close()


async def _acquire(folder: Path, mode: LockMode) -> AsyncReadWriteLock:
    try:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        lock = await asyncio.to_thread(AsyncReadWriteLock, folder / "store.db", blocking=False, is_singleton=False)
        try:
            await (lock.acquire_read() if mode == "shared" else lock.acquire_write())
        except BaseException:
            await lock.close()
            raise
    except Timeout:  # a kind of OSError
        holders = await asyncio.to_thread(_read_holders, folder)
        raise StoreBusy(
            f"{folder.parent} is in use by {'; '.join(holders) or 'another process'}. "
            "Wait until it is done, then try again."
        ) from None
    except (OSError, sqlite3.Error) as error:
        raise _unwritable(folder, error) from error
    return lock


def _write_holder_file(folder: Path, holder: Mapping[str, Any]) -> LivenessFile:
    _read_holders(folder)
    path = folder / f"{os.getpid()}-{uuid4().hex[:8]}.json"
    try:
        card = LivenessFile(path)
        path.write_text(json.dumps(holder), encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from error
    return card


def _read_holders(folder: Path) -> list[str]:
    """Return the holders of a home lock, and remove the files of processes that have died."""
    holders = []
    for path in sorted(folder.glob("*.json")):
        with suppress(OSError, ValueError, LookupError):  # its process is just creating or removing it
            holder = json.loads(path.read_text(encoding="utf-8"))
            if is_stale(path):
                path.unlink(missing_ok=True)
            else:
                holders.append(f"`{holder['command']}` (process {holder['pid']}, since {holder['since']})")
    return holders


def _unwritable(folder: Path, error: Exception) -> StoreError:
    return StoreError(
        f"SLEUTH_HOME ({folder.parent}) cannot be written: {error}. "
        "Free some space or set SLEUTH_HOME to another folder."
    )
