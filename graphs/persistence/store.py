"""The store of runs: checkpoints, the archive of texts and the list of threads, in one SQLite file or in Postgres."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from sqlalchemy import URL, event
from sqlalchemy.engine import Engine

from sleuth.graphs.persistence.checkpoints import UNSYNCED, CheckpointSerializer, SqliteCheckpoints
from sleuth.graphs.persistence.tables import LONGEST_NAME, prepare_tables
from sleuth.graphs.persistence.thread import NAME
from sleuth.graphs.persistence.thread_locks import FileThreadLocks, PostgresThreadLocks, ThreadLocks
from sleuth.graphs.persistence.threads import Threads, already_used
from sleuth.tools.errors import StoreError, ThreadBusy, UsageError, extra, needs_part
from sleuth.tools.home import Home, make_folder
from sleuth.tools.retry import retry
from sleuth.tools.settings import Settings
from sleuth.tools.storage.archive import SqlArchive
from sleuth.tools.storage.database import (
    catalogue_url,
    database_address,
    is_database_error,
    sqlite_url,
    warn_of_loss,
)
from sleuth.tools.storage.disk import remedy_of

# The name that is locked while a store is opened; no run can have it.
_OPENING = "the store of runs"


@dataclass(frozen=True, kw_only=True)
class Store:
    """An open store of one owner's runs."""

    home: Home
    saver: BaseCheckpointSaver[str]
    archive: SqlArchive
    threads: Threads
    engine: Engine
    locks: ThreadLocks

    async def check_new_name(self, name: str) -> None:
        """Raise UsageError or RunError if a new run cannot have this name."""
        if not re.fullmatch(NAME, name):
            raise UsageError(
                f"{name[:200]!r} is not a valid run name. Use 1 to {LONGEST_NAME} letters, digits and . _ @ : -."
            )
        if await self.threads.exists(name):  # of another owner
            raise already_used(name)
        if await self.saver.aget_tuple({"configurable": {"thread_id": name}}):
            raise UsageError(f"The name {name} already has checkpoints. Choose another name.")


@asynccontextmanager
async def open_store(settings: Settings, home: Home | None = None) -> AsyncIterator[Store]:
    """Open the store of the settings, in their home, and create it the first time.

    Raises:
        StoreError: the folder or database cannot be used; StoreTooNew if a newer release wrote it.
    """
    home = home or Home(settings)
    if settings.runs:
        await asyncio.to_thread(make_folder, settings.runs, "SLEUTH_RUNS")
    engine = await asyncio.to_thread(home.engine, runs_url(settings))
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _record: connection.execute(UNSYNCED))
    async with AsyncExitStack() as opened:
        opened.enter_context(translated_failures(engine))
        opened.push_async_callback(asyncio.to_thread, engine.dispose)
        if engine.dialect.name == "sqlite":
            await asyncio.to_thread(_warn_of_lost_runs, settings)
            locks: ThreadLocks = FileThreadLocks(runs_folder(settings) / "leases")
        else:
            locks = await asyncio.to_thread(PostgresThreadLocks, engine)
        async with _exclusively(locks):
            await asyncio.to_thread(prepare_tables, engine)
            store = Store(
                home=home,
                saver=await opened.enter_async_context(_saver(settings, engine, locks)),
                archive=await asyncio.to_thread(SqlArchive, engine),
                threads=Threads(engine, settings.owner, locks),
                engine=engine,
                locks=locks,
            )
        yield store


@contextmanager
def translated_failures(engine: Engine) -> Iterator[None]:
    """Raise errors of a database in the block as StoreError."""
    try:
        yield
    except Exception as error:
        if is_database_error(error):  # including a disk that fills up during a run
            raise _unusable(engine, error) from error
        raise


@asynccontextmanager
async def _exclusively(locks: ThreadLocks) -> AsyncIterator[None]:
    """Admit one process at a time: creating a new store fails if two of them do it simultaneously."""
    async with AsyncExitStack() as held:
        with suppress(StoreError):  # a folder in which no file can be created needs no lock
            await retry(
                lambda: held.enter_async_context(locks.hold(_OPENING)),
                lambda error: isinstance(error, ThreadBusy),
                pause=0.05,
                max_wait=60,
            )
        yield


def _warn_of_lost_runs(settings: Settings) -> None:
    """Log a warning if runs were locked that the store, which will be created, does not have."""
    folder = runs_folder(settings)
    warn_of_loss(folder / "runs.sqlite", islice(folder.glob("leases/*.lock"), 1, None))  # one is that of the opening


def _unusable(engine: Engine, error: Exception) -> StoreError:
    """Return the message of the database, without SQLAlchemy's wrapping, and a remedy."""
    cause = getattr(error, "orig", None) or error
    reason, where = str(cause).strip().rstrip("."), str(engine.url.database)
    remedy = "If a file is damaged, put a backup in its place."
    if engine.dialect.name == "postgresql":
        where = database_address(engine.url)
    else:
        remedy = remedy_of(Path(where), remedy)
    return StoreError(
        f"The runs in {where} cannot be read or written: {reason}. What was saved before is not lost. {remedy}"
    )


def runs_folder(settings: Settings) -> Path:
    """Return the folder of the thread locks, and of the runs unless they are in Postgres."""
    return settings.runs or settings.home


def runs_url(settings: Settings) -> str | URL:
    """Return SQLAlchemy's URL of the database that holds the runs."""
    if settings.database_url is None or settings.runs:
        return sqlite_url(runs_folder(settings) / "runs.sqlite")
    return catalogue_url(settings.home, settings.database_url)


@asynccontextmanager
async def _saver(settings: Settings, engine: Engine, locks: ThreadLocks) -> AsyncIterator[BaseCheckpointSaver[str]]:
    serde = CheckpointSerializer()
    if engine.dialect.name == "postgresql":
        with extra("postgres", "Postgres"), needs_part("postgres", "SLEUTH_DATABASE_URL"):
            from psycopg.rows import dict_row
            from psycopg_pool import AsyncConnectionPool

            from sleuth.graphs.persistence.postgres_checkpoints import PostgresCheckpoints

        # As SQLAlchemy has parsed it: psycopg understands some passwords otherwise, and its error shows them.
        url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False).replace(" ", "%20")
        arguments = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
            url,
            kwargs=arguments,
            min_size=1,
            max_size=8,
            open=False,
            check=AsyncConnectionPool.check_connection,  # a restart of the database breaks them
        )
        async with pool:
            postgres = PostgresCheckpoints(pool, serde=serde)
            postgres.fence = locks.token
            await postgres.setup()
            yield postgres
        return
    async with SqliteCheckpoints.open(runs_folder(settings) / "runs.sqlite", serde) as sqlite:
        yield sqlite
