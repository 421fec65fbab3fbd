"""Leases: a thread is run by one at a time; whoever is killed lets go, by the operating system or the database."""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from filelock import FileLock, Timeout
from sqlalchemy import Connection, delete, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from sleuth.graphs.persistence.fencing import lost, metadata, tokens
from sleuth.tools.errors import ThreadBusy
from sleuth.tools.storage import make_tables

BEAT = 5.0
"""Seconds after which a lost connection is noticed where nothing else is asked of it."""

WRITE_SECONDS = 5.0
"""Seconds to wait for a write under way: a process that is stopped in the middle of one keeps its token locked."""

# Takes the lock and stores the token in one statement: a session that has lost its lock cannot store one.
_TAKE = """
    INSERT INTO sleuth_leases (thread, token) SELECT :thread, :token WHERE pg_try_advisory_lock(:key)
    ON CONFLICT (thread) DO UPDATE SET token = excluded.token RETURNING true
"""
_LOCK, _UNLOCK = "SELECT pg_try_advisory_lock(:key)", "SELECT pg_advisory_unlock(:key)"
_UNCHANGED = "SELECT EXISTS (SELECT FROM sleuth_leases WHERE thread = :thread AND token = :token)"
_LOCK_NOT_AVAILABLE = "55P03"
_TURN = 10.0
"""Seconds to wait for another process that looks for held leases; it takes milliseconds."""

_HELD = """
    SELECT classid::bigint << 32 | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# A pid is given to others later.
_OWN = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = :pid AND backend_start = :backend_start
"""


class Leases(Protocol):
    """Who runs which thread."""

    def hold(self, id: str) -> AbstractAsyncContextManager[None]:
        """Holds a thread while it runs; raises ThreadBusy where somebody else holds it."""
        ...

    async def held(self, ids: Collection[str]) -> set[str]:
        """Return those of the threads that somebody holds, in this process or another."""
        ...

    async def forget(self, id: str) -> None:
        """Clears away what holding a thread has left, once the thread itself is gone."""
        ...

    def token(self, id: str) -> str | None:
        """Return the fencing token of a thread that is held here; None where writes need no check."""
        ...


class FileLeases:
    """A locked file for each thread that is run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def hold(self, id: str) -> AsyncIterator[None]:
        """As `Leases` says."""
        lease = _FileLease(id, self._file(id), self._turn())
        try:
            await asyncio.to_thread(lease.take)
            yield
        finally:
            await asyncio.shield(asyncio.to_thread(lease.let_go))

    async def held(self, ids: Collection[str]) -> set[str]:
        """As `Leases` says; a lease that cannot be examined counts as held."""
        return await asyncio.to_thread(self._held, ids)

    def _held(self, ids: Collection[str]) -> set[str]:
        try:
            with self._turn():
                return {id for id in ids if _is_locked(self._file(id))}
        except OSError:  # including a time-out
            return {*ids}

    def _turn(self) -> FileLock:
        """Return the lock for examining leases: the examination itself locks each file for a moment."""
        return FileLock(self._folder.with_suffix(".turn"), timeout=_TURN, thread_local=False)

    async def forget(self, id: str) -> None:
        """As `Leases` says."""
        with suppress(PermissionError):  # some systems keep what somebody has open
            await asyncio.to_thread(self._file(id).unlink, missing_ok=True)

    def token(self, id: str) -> None:
        """As `Leases` says: the operating system holds the lock as long as the process lives."""

    def _file(self, id: str) -> Path:
        return self._folder / f"{sha256(id.encode()).hexdigest()[:32]}.lock"


def _is_locked(file: Path) -> bool:
    if not file.exists():
        return False
    try:
        with FileLock(file, timeout=0, thread_local=False):
            return False
    except Timeout:
        return True


class _FileLease:
    """A lock on a file, with a card beside it that says who holds it."""

    def __init__(self, id: str, file: Path, turn: FileLock) -> None:
        self._id = id
        self._examining = turn
        self._card = file.with_suffix(".holder")
        self._lock = FileLock(file, timeout=0, thread_local=False)
        self._turn = threading.Lock()
        self._over = False

    def take(self) -> None:
        with self._turn:
            if self._over:  # whoever wanted it was cancelled before this thread had its turn
                return
            self._card.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._acquire()
            except Timeout:
                raise _busy(self._id, self._holder()) from None
            self._card.write_text(f"process {os.getpid()} on {socket.gethostname()}")

    def let_go(self) -> None:
        with self._turn:
            self._over = True
            if self._lock.is_locked:
                self._card.unlink(missing_ok=True)
                self._lock.release()

    def _acquire(self) -> None:
        with suppress(Timeout):
            self._lock.acquire()
            return
        with self._examining:  # it may have been locked by somebody who only examined it
            self._lock.acquire()

    def _holder(self) -> str:
        with suppress(OSError):  # who held it may have let go by now
            return self._card.read_text() or "another process"
        return "another process"


@dataclass(eq=False)
class _Ticket:
    id: str
    over: bool = False
    token: str = field(default_factory=lambda: uuid4().hex)

    @property
    def key(self) -> int:
        return int.from_bytes(sha256(self.id.encode()).digest()[:8], signed=True)


class AdvisoryLeases:
    """Advisory locks of Postgres, all of one connection: many runs at once must not use up what others need.

    A connection that is lost takes its locks with it. They are taken again over a new one as soon as that is noticed:
    when another thread is taken or let go of, or within `BEAT` seconds. If another process has taken one of them
    meanwhile, its token has replaced the one from here: writes from here fail, and the run ends with ThreadBusy.
    """

    def __init__(self, engine: Engine) -> None:
        """Blocks while it makes its table."""
        self._engine = engine
        self._turn = threading.Lock()
        self._held: dict[str, _Ticket] = {}
        # Those that are lost keep their token until their holder ends.
        self._tokens: dict[str, str] = {}
        self._connection: Connection | None = None
        self._session: Mapping[str, Any] | None = None
        make_tables(engine, metadata)

    @asynccontextmanager
    async def hold(self, id: str) -> AsyncIterator[None]:
        """As `Leases` says; cancels the task that it began in, as a time-out does, where the thread is lost."""
        ticket = _Ticket(id)
        try:
            await asyncio.to_thread(self._take, ticket)
            async with self._watched(ticket):
                yield
        finally:
            await asyncio.shield(asyncio.to_thread(self._let_go, ticket))

    async def held(self, ids: Collection[str]) -> set[str]:
        """As `Leases` says; those that this process holds count also while its connection is lost."""
        return await asyncio.to_thread(self._among, ids)

    def _among(self, ids: Collection[str]) -> set[str]:
        with self._engine.connect() as connection:
            keys = {*connection.scalars(text(_HELD))}
        return {id for id in ids if id in self._held or _Ticket(id).key in keys}

    async def forget(self, id: str) -> None:
        """As `Leases` says: the token."""
        await asyncio.to_thread(self._forget, id)

    def token(self, id: str) -> str | None:
        """As `Leases` says."""
        return self._tokens.get(id)

    def _forget(self, id: str) -> None:
        own = delete(tokens).where(tokens.c.thread == id, tokens.c.token == self.token(id))
        with self._engine.begin() as connection:
            connection.execute(own)

    @asynccontextmanager
    async def _watched(self, ticket: _Ticket) -> AsyncIterator[None]:
        limit = asyncio.timeout(None)
        try:
            async with limit:
                watch = asyncio.create_task(self._watch(ticket, limit))
                try:
                    yield
                finally:
                    watch.cancel()
        except TimeoutError:
            if limit.expired():
                raise lost(ticket.id) from None
            raise

    async def _watch(self, ticket: _Ticket, limit: asyncio.Timeout) -> None:
        while True:
            await asyncio.sleep(BEAT)
            if not await asyncio.to_thread(self._keeps, ticket):
                limit.reschedule(0)
                return

    def _keeps(self, ticket: _Ticket) -> bool:
        """Whether a thread is still held here, as far as the database can be asked at this moment."""
        if self._turn.acquire(blocking=False):  # else somebody else is asking, and learns the same
            try:
                if self._has(ticket):
                    with suppress(SQLAlchemyError):
                        self._asked("SELECT true")
            finally:
                self._turn.release()
        return self._has(ticket)

    def _has(self, ticket: _Ticket) -> bool:
        return self._held.get(ticket.id) is ticket

    def _take(self, ticket: _Ticket) -> None:
        with self._turn:
            if ticket.over:  # whoever wanted it was cancelled before this thread had its turn
                return
            # The session that holds a lock would be given it once more.
            if ticket.id in self._tokens or not self._taken(ticket):
                raise _busy(ticket.id, "another process")
            self._held[ticket.id] = ticket
            self._tokens[ticket.id] = ticket.token

    def _taken(self, ticket: _Ticket) -> bool:
        try:
            return self._asked(_TAKE, thread=ticket.id, token=ticket.token, key=ticket.key)
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
                return False
            raise

    def _let_go(self, ticket: _Ticket) -> None:
        with self._turn:
            ticket.over = True
            if self._tokens.get(ticket.id) == ticket.token:
                del self._tokens[ticket.id]
            if not self._has(ticket):
                return
            del self._held[ticket.id]
            with suppress(SQLAlchemyError):  # where the connection is lost, so is the lock
                self._asked(_UNLOCK, key=ticket.key)
                if not self._held:
                    self._hang_up()
                    self._session = None

    def _asked(self, question: str, **values: int | str) -> bool:
        """What Postgres says; over a new connection, which has what the last one held, where that one is lost."""
        if self._connection is not None:
            try:
                return self._said(question, **values)
            except SQLAlchemyError:
                self._hang_up()
        try:
            self._connect()
            return self._said(question, **values)
        except SQLAlchemyError:
            self._hang_up()
            raise

    def _said(self, question: str, **values: int | str) -> bool:
        assert self._connection is not None
        return bool(self._connection.scalar(text(question), values))

    def _connect(self) -> None:
        """Takes again what was held, unless another process has taken it meanwhile, even if it has ended since."""
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._connection = connection
        if self._session:  # the server may not have noticed yet that the last one is lost
            connection.execute(text(_END), self._session)
        connection.execute(text(f"SET lock_timeout = '{WRITE_SECONDS:f}s'"))
        self._session = dict(connection.execute(text(_OWN)).mappings().one())
        for each in [*self._held.values()]:
            if not self._said(_LOCK, key=each.key):
                del self._held[each.id]
            elif not self._said(_UNCHANGED, thread=each.id, token=each.token):
                self._said(_UNLOCK, key=each.key)
                del self._held[each.id]

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()  # one that is only closed would be used again
            self._connection.close()
            self._connection = None


def _busy(id: str, holder: str) -> ThreadBusy:
    return ThreadBusy(f"Thread {id} is being run by {holder}. Wait until it ends, or stop it first.")
