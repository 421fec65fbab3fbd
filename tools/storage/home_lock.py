"""Locks on one SLEUTH_HOME: many may ask and search at once, one alone may ingest, delete or prune.

The lock is filelock's ReadWriteLock: the operating system takes it back when its holder is killed. Beside it every
holder leaves a small file that says who it is, so that whoever is turned away learns whom to wait for. That one is
locked as well, and the card of a holder that was killed is not believed, whoever has its process number now.
"""

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal
from uuid import uuid4

from filelock import AsyncReadWriteLock, Timeout

from sleuth.tools.errors import StoreBusy, StoreError
from sleuth.tools.storage.liveness import Mark, is_left
from sleuth.tools.types import now

LockMode = Literal["shared", "exclusive"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """Who holds a lock: its process, what it does, and since when (UTC)."""

    pid: int
    command: str
    since: str
    mode: LockMode


@asynccontextmanager
async def hold(home: Path, mode: LockMode, *, command: str) -> AsyncIterator[None]:
    """Holds the lock on a SLEUTH_HOME; never waits.

    Raises:
        StoreBusy: somebody holds it in a way that excludes `mode`; the message says who.
        StoreError: the folder cannot be written.
    """
    folder = home / "locks"
    lock = await _acquire(folder, mode)
    try:
        card = await asyncio.to_thread(
            _leave_card, folder, Holder(pid=os.getpid(), command=command, since=now(), mode=mode)
        )
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
        raise StoreBusy(await asyncio.to_thread(_who, folder)) from None
    except (OSError, sqlite3.Error) as error:
        raise _unwritable(folder, error) from error
    return lock


def _leave_card(folder: Path, holder: Holder) -> Mark:
    _living(folder)
    path = folder / f"{holder.pid}-{uuid4().hex[:8]}.json"
    try:
        card = Mark(path)
        path.write_text(json.dumps(asdict(holder)), encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from error
    return card


def _living(folder: Path) -> list[Holder]:
    """Who holds a lock; the cards of those who have died are removed."""
    holders = []
    for path in sorted(folder.glob("*.json")):
        with suppress(OSError, ValueError, TypeError):  # its holder is just coming or leaving
            holder = Holder(**json.loads(path.read_text(encoding="utf-8")))
            if is_left(path):
                path.unlink(missing_ok=True)
            else:
                holders.append(holder)
    return holders


def _who(folder: Path) -> str:
    names = "; ".join(f"`{each.command}` (process {each.pid}, since {each.since})" for each in _living(folder))
    return f"{folder.parent} is in use by {names or 'another process'}. Wait until it is done, then try again."


def _unwritable(folder: Path, error: Exception) -> StoreError:
    return StoreError(
        f"SLEUTH_HOME ({folder.parent}) cannot be written: {error}. "
        "Free some space or set SLEUTH_HOME to another folder."
    )
