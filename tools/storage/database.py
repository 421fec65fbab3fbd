"""Opens the catalogue's database: a SQLite file or Postgres, each with the guarantees that the catalogue counts on."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, MetaData, Table, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from sleuth.tools.errors import StoreError, UsageError
from sleuth.tools.optional_imports import extra

_BUSY_MILLISECONDS = 30_000
# The SQLSTATE of a write to a server that takes none, such as a standby during a failover; drivers call it internal.
_READ_ONLY = "25006"
# Any constant of our own: writers of one Postgres catalogue take turns on it.
_WRITER_LOCK = 0x51E07
# Rows after which Postgres looks at its tables for the first time.
_FIRST_LOOK = 1_000


def sqlite_url(file: Path) -> URL:
    """Return SQLAlchemy's URL of a file, whatever characters its path contains."""
    return URL.create("sqlite", database=str(file))


def catalogue_url(home: Path, database_url: str | None) -> str | URL:
    """SQLAlchemy's URL of the catalogue: Postgres where one is set, else a file below SLEUTH_HOME."""
    if database_url is None:
        return sqlite_url(home / "catalogue.db")
    scheme, divider, rest = database_url.partition("://")
    if not divider or scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise UsageError("SLEUTH_DATABASE_URL must start with postgresql:// (without it, SQLite is used).")
    return f"postgresql+psycopg://{rest}"


def open_engine(url: str | URL) -> Engine:
    """An engine whose write transactions are serialised, so that journal numbers become visible in their order."""
    try:
        with extra("postgres", "Postgres"):
            made = make_url(url)
            engine = create_engine(made, **({} if made.drivername == "sqlite" else {"pool_pre_ping": True}))
    except (ArgumentError, ValueError) as error:
        raise UsageError(f"SLEUTH_DATABASE_URL is not a database URL: {error}") from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        event.listen(engine, "begin", _begin_postgres)
    return engine


@contextmanager
def transaction(engine: Engine, *, write: bool = False) -> Iterator[Connection]:
    """One transaction; raises StoreError where the database complains."""
    try:
        with engine.connect().execution_options(sleuth_write=write) as connection, connection.begin():
            yield connection
    except (DBAPIError, PoolExhausted) as error:
        raise unusable(engine, error, "written" if write else "read") from error


def make_tables(engine: Engine, metadata: MetaData) -> None:
    """Makes those that are missing; another process that does the same meanwhile waits."""
    with engine.execution_options(sleuth_write=True).begin() as connection:
        metadata.create_all(connection)


class CountedRows:
    """Has Postgres look at how many rows some tables have whenever they may have doubled; SQLite need not know.

    Until Postgres knows, it may read a whole collection to find a few rows of it. Its own daemon looks too, but
    minutes after a large ingest has begun.
    """

    def __init__(self, engine: Engine, *tables: Table) -> None:
        self._engine = engine
        self._names = ", ".join(table.name for table in tables)
        self._left = self._next = _FIRST_LOOK

    def grown(self, by: int) -> None:
        """So many rows have come."""
        self._left -= by
        if self._left <= 0 and self._engine.dialect.name == "postgresql":
            with transaction(self._engine) as connection:
                connection.exec_driver_sql(f"ANALYZE {self._names}")
            self._next *= 2
            self._left = self._next


def unusable(engine: Engine, error: DBAPIError | PoolExhausted, what: str) -> StoreError:
    """The database's complaint in a line, with where to look."""
    cause = getattr(error, "orig", None) or error
    reason = " ".join(str(cause).split())
    if is_damaged(cause):
        return StoreError(
            f"The catalogue {engine.url.database} is damaged: {reason}. Put a backup of it in its place, "
            "or move it away and read the documents in anew."
        )
    look = "the disk's free space and SLEUTH_HOME" if engine.dialect.name == "sqlite" else "SLEUTH_DATABASE_URL"
    return StoreError(f"The catalogue cannot be {what}: {reason}. Check {look}.")


def is_damaged(error: BaseException | None) -> bool:
    """Whether SQLite finds pages in a file that it cannot have written."""
    damaged = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in damaged


def is_of_database(error: BaseException) -> bool:
    """Whether a database or its driver raised it."""
    return isinstance(error, (SQLAlchemyError, sqlite3.Error, *_of_psycopg("Error")))


def is_away(error: BaseException) -> bool:
    """Whether a database cannot be reached or written at this moment, whatever was asked of it."""
    if isinstance(error, StoreError) and error.__cause__:
        return is_away(error.__cause__)
    kinds = (OperationalError, InterfaceError, PoolExhausted, sqlite3.OperationalError)
    if isinstance(error, (*kinds, *_of_psycopg("OperationalError", "InterfaceError"))):
        return True
    return getattr(getattr(error, "orig", error), "sqlstate", None) == _READ_ONLY


def _of_psycopg(*names: str) -> list[type[Exception]]:
    """Nothing of a driver that was never loaded can have been raised."""
    driver = sys.modules.get("psycopg")
    return [getattr(driver, name) for name in names] if driver else []


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # A text whose bytes are not UTF-8 shows U+FFFD for each of them; SQLite's own way hides every row next to it.
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says, not at the driver's guess
    # WAL lets readers go on beside the writer. FULL: a commit also survives a power cut, or the indexes, which sync on
    # their own, could be ahead of the truth; a batch commits once, so the sync costs little.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={_BUSY_MILLISECONDS}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A write takes its lock at the start: a read that turns into a write could fail half-way, without waiting.
    writes = connection.get_execution_options().get("sleuth_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgres(connection: Connection) -> None:
    if connection.get_execution_options().get("sleuth_write", False):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER_LOCK})
