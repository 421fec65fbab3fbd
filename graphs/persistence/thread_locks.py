"""Thread locks: one process runs a thread. A killed process loses its locks, by the operating system or by Postgres.

In Postgres a lock decides which process runs a thread, and a fencing token which process may write to it. A connection
that is lost frees its locks. Their runs continue until another process takes one of the threads: its token replaces the
older one, further writes of the older holder are refused, and its run ends with ThreadBusy. Locks on files need no
token: the operating system holds them as long as the process lives.
"""

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from filelock import FileLock, Timeout
from sqlalchemy import Column, Connection, MetaData, String, Table, Text, delete, select, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from sleuth.tools.errors import StoreError, ThreadBusy
from sleuth.tools.storage.database import make_tables
from sleuth.tools.storage.locks import is_stale

_EXAMINATION_SECONDS = 0.2
"""Seconds to wait for another process that examines a lock by locking its file; it takes milliseconds."""

WRITE_SECONDS = 5.0
"""Seconds to wait for a write in progress: a process that is stopped in the middle of one keeps its token locked."""

# Takes the lock and stores the token in one statement: a session that has lost its lock cannot store one.
_TAKE = """
    INSERT INTO sleuth_leases (thread, token) SELECT :thread, :token WHERE pg_try_advisory_lock(:key)
    ON CONFLICT (thread) DO UPDATE SET token = excluded.token RETURNING true
"""
_UNLOCK = "SELECT pg_advisory_unlock(:key)"
_LOCK_NOT_AVAILABLE = "55P03"

_HELD = """
    SELECT classid::bigint << 32 | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# The same process id is given to later sessions.
_SESSION = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = :pid AND backend_start = :backend_start
"""

T = TypeVar("T")

metadata = MetaData()
tokens = Table(
    "sleuth_leases",
    metadata,
    Column("thread", Text, primary_key=True),
    Column("token", String(32), nullable=False),
)


def check_token(connection: Connection, thread: str, token: str | None) -> None:
    """Raise ThreadBusy if another process has taken a thread; until the transaction ends, none can take it."""
    if token is None:
        return
    row = select(tokens.c.token).where(tokens.c.thread == thread).with_for_update(read=True)
    if connection.scalar(row) != token:
        raise lost(thread)


def lost(thread: str) -> ThreadBusy:
    """Return the error for a thread whose lock was lost."""
    return ThreadBusy(
        f"Thread {thread} is being run by another process, which took it while the database was away. "
        "Wait until it ends, or stop it first."
    )


class ThreadLocks(ABC):
    """The locks on the threads of a store.

    What blocks is done in one thread, one call after the other: a lock is released after it was taken, even if the
    holder was cancelled meanwhile.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "locks")

    @asynccontextmanager
    async def hold(self, id: str) -> AsyncIterator[None]:
        """Hold the lock on a thread while it runs.

        Raises:
            ThreadBusy: somebody else holds it.
            StoreError: the folder of the locks cannot be written.
        """
        held = ExitStack()
        try:
            await self._call(lambda: self._take(id, held))
            yield
        finally:
            await asyncio.shield(self._call(held.close))

    async def held(self, ids: Collection[str]) -> set[str]:
        """Return those of the threads that this process or another holds."""
        return await self._call(lambda: self._held_of(ids))

    async def forget(self, id: str) -> None:
        """Remove the file or row of a lock that is held here, once the thread itself is gone."""
        await self._call(lambda: self._forget(id))

    def token(self, id: str) -> str | None:
        """Return the fencing token of a thread that is held here; None if writes need no check."""
        return None

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    @abstractmethod
    def _take(self, id: str, held: ExitStack) -> None:
        """Take a lock, which `held` releases; raise ThreadBusy if somebody else holds it."""

    @abstractmethod
    def _held_of(self, ids: Collection[str]) -> set[str]: ...

    @abstractmethod
    def _forget(self, id: str) -> None: ...


class FileThreadLocks(ThreadLocks):
    """A locked file for each thread that is run; its text names the holder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def _file(self, id: str) -> Path:
        return self._folder / f"{sha256(id.encode()).hexdigest()[:32]}.lock"

    def _take(self, id: str, held: ExitStack) -> None:
        file = self._file(id)
        lock = FileLock(file, timeout=_EXAMINATION_SECONDS, thread_local=False)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            held.callback(lock.release)
            file.write_text(f"process {os.getpid()} on {socket.gethostname()}")
        except Timeout:
            holder = "another process"
            with suppress(OSError):  # the file may be gone by now
                holder = file.read_text() or holder
            raise _busy(id, holder) from None
        except OSError as error:
            raise StoreError(
                f"Thread {id} cannot be locked: {error}. Check that {self._folder.parent} can be written, and its "
                "free space."
            ) from error

    def _held_of(self, ids: Collection[str]) -> set[str]:
        return {id for id in ids if (file := self._file(id)).exists() and not is_stale(file)}

    def _forget(self, id: str) -> None:
        with suppress(PermissionError):  # some systems keep a file that is open
            self._file(id).unlink(missing_ok=True)


class PostgresThreadLocks(ThreadLocks):
    """Advisory locks, all of one connection: many simultaneous runs must not use up what others need."""

    def __init__(self, engine: Engine) -> None:
        """Create the table of tokens; this blocks."""
        super().__init__()
        self._engine = engine
        self._tokens: dict[str, str] = {}
        self._connection: Connection | None = None
        self._session: Mapping[str, Any] | None = None
        make_tables(engine, metadata)

    def token(self, id: str) -> str | None:
        """Return the fencing token of a thread that is held here."""
        return self._tokens.get(id)

    def _take(self, id: str, held: ExitStack) -> None:
        token = uuid4().hex
        # Postgres would give the lock once more to the session that holds it.
        if id in self._tokens or not self._try_lock(id, token):
            raise _busy(id, "another process")
        self._tokens[id] = token
        held.callback(self._release, id)

    def _try_lock(self, id: str, token: str) -> bool:
        """Take a lock, on a new connection if the last one is lost."""
        if self._connection is not None:
            try:
                return _lock_on(self._connection, id, token)
            except SQLAlchemyError:
                self._disconnect()
        return _lock_on(self._connect(), id, token)

    def _release(self, id: str) -> None:
        del self._tokens[id]
        if self._connection is not None:
            try:  # a lock that was lost with an earlier connection is not held: Postgres warns, and releases nothing
                self._connection.scalar(text(_UNLOCK), {"key": _key(id)})
            except SQLAlchemyError:
                self._disconnect()
        if not self._tokens and self._connection is not None:
            self._disconnect()
            self._session = None

    def _held_of(self, ids: Collection[str]) -> set[str]:
        """Return those of the threads that somebody holds; those of this process count even if their lock is lost."""
        with self._engine.connect() as connection:
            keys = {*connection.scalars(text(_HELD))}
        return {id for id in ids if id in self._tokens or _key(id) in keys}

    def _forget(self, id: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(delete(tokens).where(tokens.c.thread == id, tokens.c.token == self.token(id)))

    def _connect(self) -> Connection:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if self._session:  # the server may not have noticed yet that the last connection is lost
            connection.execute(text(_END), self._session)
        connection.execute(text(f"SET lock_timeout = '{WRITE_SECONDS:f}s'"))
        self._session = dict(connection.execute(text(_SESSION)).mappings().one())
        self._connection = connection
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()  # a connection that is only closed would be used again
            self._connection.close()
            self._connection = None


def _key(id: str) -> int:
    return int.from_bytes(sha256(id.encode()).digest()[:8], signed=True)


def _lock_on(connection: Connection, id: str, token: str) -> bool:
    try:
        return bool(connection.scalar(text(_TAKE), {"thread": id, "token": token, "key": _key(id)}))
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
            raise
        connection.scalar(text(_UNLOCK), {"key": _key(id)})
        return False


def _busy(id: str, holder: str) -> ThreadBusy:
    return ThreadBusy(f"Thread {id} is being run by {holder}. Wait until it ends, or stop it first.")
