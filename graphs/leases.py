"""Leases: a thread is run by one at a time; whoever is killed lets go, by the operating system or the database."""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout
from sqlalchemy import Connection, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from sleuth.tools.errors import ThreadBusy


class Leases(Protocol):
    """Who runs which thread."""

    def hold(self, id: str) -> AbstractAsyncContextManager[None]:
        """Holds a thread while it runs; raises ThreadBusy where somebody else holds it."""
        ...

    async def forget(self, id: str) -> None:
        """Clears away what holding a thread has left, once the thread itself is gone."""
        ...


class FileLeases:
    """A locked file for each thread that is run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def hold(self, id: str) -> AsyncIterator[None]:
        """As `Leases` says."""
        file = self._file(id)
        card = file.with_suffix(".holder")
        lock = FileLock(file, timeout=0, thread_local=False)
        await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True)
        try:
            lock.acquire()  # never waits; whoever is cancelled while a thread does it would leave it held
        except Timeout:
            raise _busy(id, card.read_text() if card.exists() else "another process") from None
        try:
            card.write_text(f"process {os.getpid()} on {socket.gethostname()}")
            yield
        finally:
            card.unlink(missing_ok=True)
            lock.release()

    async def forget(self, id: str) -> None:
        """As `Leases` says."""
        with suppress(PermissionError):  # some systems keep what somebody has open
            await asyncio.to_thread(self._file(id).unlink, missing_ok=True)

    def _file(self, id: str) -> Path:
        return self._folder / f"{sha256(id.encode()).hexdigest()[:32]}.lock"


@dataclass(eq=False)
class _Ticket:
    id: str
    over: bool = False

    @property
    def key(self) -> int:
        return int.from_bytes(sha256(self.id.encode()).digest()[:8], signed=True)


class AdvisoryLeases:
    """Advisory locks of Postgres, all of one connection: many runs at once must not use up what others need."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._turn = threading.Lock()
        self._held: dict[str, _Ticket] = {}
        self._connection: Connection | None = None

    @asynccontextmanager
    async def hold(self, id: str) -> AsyncIterator[None]:
        """As `Leases` says."""
        ticket = _Ticket(id)
        try:
            await asyncio.to_thread(self._take, ticket)
            yield
        finally:
            await asyncio.shield(asyncio.to_thread(self._let_go, ticket))

    async def forget(self, id: str) -> None:
        """As `Leases` says: nothing is left."""

    def _take(self, ticket: _Ticket) -> None:
        with self._turn:
            if ticket.over:  # whoever wanted it was cancelled before this thread had its turn
                return
            # The session that holds a lock would be given it once more.
            if ticket.id in self._held or not self._locked(ticket):
                raise _busy(ticket.id, "another process")
            self._held[ticket.id] = ticket

    def _let_go(self, ticket: _Ticket) -> None:
        with self._turn:
            ticket.over = True
            if self._held.get(ticket.id) is not ticket:
                return
            del self._held[ticket.id]
            with suppress(DBAPIError):  # of a connection that is lost, and with it all locks
                self._asked("pg_advisory_unlock", ticket)
            if not self._held:
                self._hang_up()

    def _locked(self, ticket: _Ticket) -> bool:
        try:
            return self._asked("pg_try_advisory_lock", ticket)
        except DBAPIError:
            self._hang_up()
            for each in self._held.values():
                self._asked("pg_try_advisory_lock", each)
            return self._asked("pg_try_advisory_lock", ticket)

    def _asked(self, function: str, ticket: _Ticket) -> bool:
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        return bool(self._connection.scalar(text(f"SELECT {function}(:key)"), {"key": ticket.key}))

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()  # one that is only closed would be used again
            self._connection.close()
            self._connection = None


def _busy(id: str, holder: str) -> ThreadBusy:
    return ThreadBusy(f"Thread {id} is being run by {holder}. Wait until it ends, or stop it first.")
