"""Databases: a SQLite file or Postgres, with the guarantees that the catalogue needs."""

import asyncio
import logging
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine, MetaData, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from sleuth.tools.errors import StoreError, UsageError, extra
from sleuth.tools.storage.disk import remedy_of

_log = logging.getLogger(__name__)

_BUSY_MILLISECONDS = 30_000
# SQLSTATE of a write to a read-only server, such as a standby during a failover; drivers raise an internal error.
_READ_ONLY = "25006"
# Key of the lock that serializes writers of a Postgres catalogue; any constant.
_WRITER_LOCK = 0x51E07
# Classes of SQLSTATE of values that a table cannot hold: data, constraints, limits.
_REFUSED = ("22", "23", "54")
_VALUES_PER_STATEMENT = 500


P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")


def in_thread(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate a blocking function: the result is a coroutine function that runs it in a thread."""

    @wraps(function)
    async def run(*args: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(function, *args, **options)

    return run


def batches(values: Sequence[V]) -> Iterator[Sequence[V]]:
    """Yield the values in parts that fit into a statement of any driver."""
    for start in range(0, len(values), _VALUES_PER_STATEMENT):
        yield values[start : start + _VALUES_PER_STATEMENT]


def sqlite_url(file: Path) -> URL:
    """Return SQLAlchemy's URL of a file with any characters in its path."""
    return URL.create("sqlite", database=str(file))


def catalogue_url(home: Path, database_url: str | None) -> str | URL:
    """Return SQLAlchemy's URL of the catalogue: Postgres if one is set, else a file below SLEUTH_HOME."""
    if database_url is None:
        return sqlite_url(home / "catalogue.db")
    scheme, divider, rest = database_url.partition("://")
    if not divider or scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise UsageError("SLEUTH_DATABASE_URL must start with postgresql:// (without it, SQLite is used).")
    url = f"postgresql+psycopg://{rest}"
    _parsed(url)
    return url


def database_address(database_url: str | URL) -> str:
    """Return scheme, host, port and database of a URL; its name, password and options may be secret."""
    url = _parsed(database_url)
    return URL.create(url.drivername, host=url.host, port=url.port, database=url.database).render_as_string()


def _parsed(url: str | URL) -> URL:
    """Return a URL in its parts; no error contains a part of it, which may be of a password."""
    with suppress(ArgumentError, ValueError):
        parsed = make_url(url)
        if "@" not in (parsed.host or ""):
            return parsed
    raise UsageError(
        "SLEUTH_DATABASE_URL is not a database URL. Write postgresql://NAME:PASSWORD@HOST:PORT/DATABASE, with %40 for "
        "an @ in the name or the password."
    )


def open_engine(url: str | URL) -> Engine:
    """Return an engine that serializes write transactions, so that journal numbers become visible in order."""
    made = _parsed(url)
    with extra("postgres", "Postgres"):
        engine = create_engine(made, **({} if made.drivername == "sqlite" else {"pool_pre_ping": True}))
    if engine.dialect.name == "sqlite":
        file = _OpenedFile(Path(str(engine.url.database)))
        event.listen(engine, "do_connect", file.check)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "connect", file.remember)
        event.listen(engine, "begin", file.check)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        event.listen(engine, "begin", _begin_postgres)
    return engine


@contextmanager
def transaction(engine: Engine, *, write: bool = False) -> Iterator[Connection]:
    """Run one transaction; raise StoreError for errors of the database."""
    try:
        with engine.connect().execution_options(sleuth_write=write) as connection, connection.begin():
            yield connection
    except (DBAPIError, PoolExhausted) as error:
        cause = getattr(error, "orig", None) or error
        reason = " ".join(str(cause).split())
        advice = "Check SLEUTH_DATABASE_URL."
        if engine.dialect.name == "sqlite":
            file = Path(str(engine.url.database))
            advice = remedy_of(file, f"Check SLEUTH_HOME, or put a backup of {file} in its place.")
        raise StoreError(f"The catalogue cannot be {'written' if write else 'read'}: {reason}. {advice}") from error


class _OpenedFile:
    """A SQLite file in use. SQLite would write to one that was deleted, and create an empty one in its place."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._inode: int | None = None

    def remember(self, *_event: object) -> None:
        """Remember the file that the first connection has opened."""
        self._inode = self._inode or self._file.stat().st_ino

    def check(self, *_event: object) -> None:
        """Raise StoreError if the file is not the one that was opened."""
        if self._inode and self._inode != (self._file.stat().st_ino if self._file.exists() else None):
            raise StoreError(
                f"{self._file} was deleted or replaced while it was in use. Stop all sleuth commands and servers, "
                "restore a backup with `sleuth restore`, and start them again."
            ) from sqlite3.OperationalError("the database is another file")  # until then it is away


def warn_of_loss(file: Path, trace: Iterable[Path]) -> None:
    """Log a warning if a database will be created empty although others of its files, the `trace`, are present."""
    if not (file.exists() and file.stat().st_size) and any(trace):
        _log.warning(
            "%s is missing or empty, and a new one is created. If it was deleted by mistake, restore a backup with "
            "`sleuth restore`.",
            file,
        )


def make_tables(engine: Engine, metadata: MetaData) -> None:
    """Create missing tables; another process that does the same meanwhile waits."""
    with engine.execution_options(sleuth_write=True).begin() as connection:
        metadata.create_all(connection)


def is_database_error(error: BaseException) -> bool:
    """Return whether a database or its driver raised an error."""
    return isinstance(error, (SQLAlchemyError, sqlite3.Error, *_of_psycopg("Error")))


def is_away(error: BaseException) -> bool:
    """Return whether an error means that a database cannot be reached or written at the moment."""
    if is_refused(error):
        return False
    if isinstance(error, StoreError) and error.__cause__:
        return is_away(error.__cause__)
    kinds = (OperationalError, InterfaceError, PoolExhausted, sqlite3.OperationalError)
    if isinstance(error, (*kinds, *_of_psycopg("OperationalError", "InterfaceError"))):
        return True
    return getattr(getattr(error, "orig", error), "sqlstate", None) == _READ_ONLY


def is_refused(error: BaseException | None) -> bool:
    """Return whether a database refuses the values of a statement: the same statement always fails."""
    if isinstance(error, StoreError):
        return is_refused(error.__cause__)
    cause = getattr(error, "orig", error)
    return isinstance(cause, sqlite3.IntegrityError) or str(getattr(cause, "sqlstate", ""))[:2] in _REFUSED


def _of_psycopg(*names: str) -> list[type[Exception]]:
    """Return exception classes of psycopg; none if it was never imported."""
    driver = sys.modules.get("psycopg")
    return [getattr(driver, name) for name in names] if driver else []


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # `_begin_sqlite` begins transactions, not the driver
    # WAL lets readers work in parallel with the writer. FULL: a commit survives a power cut, or the indexes, which sync
    # by themselves, could be ahead of the catalogue. A batch commits once, so the sync costs little.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={_BUSY_MILLISECONDS}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A write takes its lock at the start: a read that becomes a write could fail without waiting.
    writes = connection.get_execution_options().get("sleuth_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgres(connection: Connection) -> None:
    if connection.get_execution_options().get("sleuth_write", False):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER_LOCK})
