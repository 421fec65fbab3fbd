"""Operations on a store in child processes, which report each durable result, and may be killed at any moment."""

import asyncio
import json
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from entries import entry
from four_hops import QUESTION, InProcess, Shelf
from hashing_embedder import HashingEmbedder
from preloaded import child
from sqlalchemy import URL, inspect, select

from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store, runs_url
from sleuth.graphs.runs.pruning import prune
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import SleuthError
from sleuth.tools.ingestion.ingestion import Ingestion, ingest
from sleuth.tools.search.index import IndexName
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage import schema
from sleuth.tools.storage.catalogue import Entry
from sleuth.tools.storage.database import open_engine, transaction
from sleuth.tools.storage.locks import LockMode, hold

# Releases still to come: each changes the catalogue's tables in several statements.
_PRESENT, _MIGRATIONS = schema.SCHEMA_VERSION, dict(schema.MIGRATIONS)
_ON_THE_WAY = ("sleuth_moved", "sleuth_numbers")
"""Tables that are there only while a store is migrated."""


def become(release: int) -> None:
    """From here on this process opens catalogues as that release does; 0 is the present one."""
    schema.SCHEMA_VERSION = _PRESENT + release
    schema.MIGRATIONS = _MIGRATIONS | {_PRESENT + n: _steps(n) for n in range(release)}


@contextmanager
def being(release: int) -> Iterator[None]:
    """The same, for a while."""
    become(release)
    try:
        yield
    finally:
        become(0)


def release_of(url: str | URL) -> int:
    """The release that a catalogue is of; fails where it is only half of it."""
    engine = open_engine(url)
    with transaction(engine, write=True) as connection:  # waits until the database has rolled back what was killed
        found = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == "schema_version"))
        columns = {column["name"] for column in inspect(connection).get_columns("sleuth_documents")}
        tables = inspect(connection).get_table_names()
    engine.dispose()
    release = int(found or 0) - _PRESENT
    assert {name for name in columns if name.startswith("letters_")} == {f"letters_{n}" for n in range(release)}
    assert not set(tables) & set(_ON_THE_WAY)
    return release


def _steps(release: int) -> tuple[str, ...]:
    """Moves all passages out and in again, and adds a column; the numbers are for it to take a while."""
    return (
        f"ALTER TABLE sleuth_documents ADD COLUMN letters_{release} INTEGER",
        "CREATE TABLE sleuth_moved AS SELECT * FROM sleuth_passages",
        "DELETE FROM sleuth_passages",
        "CREATE TABLE sleuth_numbers AS WITH RECURSIVE numbers (n) AS "
        "(SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200000) SELECT n FROM numbers",
        "INSERT INTO sleuth_passages SELECT * FROM sleuth_moved",
        "DROP TABLE sleuth_numbers",
        f"UPDATE sleuth_documents SET letters_{release} = length(text)",
        "DROP TABLE sleuth_moved",
    )


SECONDS = 300.0
"""Longest wait for a child."""

MODES: tuple[Mode, ...] = ("keyword", "dense", "hybrid", "graph")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation: `kind` is a function below. `texts` are by document, or of the only file that is read.

    `die_at`: the process is killed when an index has changed, before its position in the journal is stored.
    `release`: number of releases after the present one. `older_than`: age in seconds from which runs are old.
    """

    kind: str
    settings: Settings
    texts: Mapping[str, tuple[str, ...]]
    names: tuple[str, ...] = ()
    file: Path | None = None
    die_at: IndexName | None = None
    release: int = 0
    older_than: float | None = None

    def on_indexed(self, name: IndexName, _passages: int) -> None:
        if name == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


Report = Callable[[str], None]


def run(operation: Operation, pipe: Connection) -> None:
    """Print "running", then the names of durable results, and at the end "done"."""
    asyncio.run(_run(operation, pipe))


async def _run(operation: Operation, pipe: Connection) -> None:
    become(operation.release)
    pipe.send("running")
    await OPERATIONS[operation.kind](operation, pipe.send)
    pipe.send("done")


@asynccontextmanager
async def opened(operation: Operation, mode: LockMode = "exclusive") -> AsyncIterator[Collection]:
    async with (
        hold(operation.settings.home, mode, command="a test"),
        await Collection.open(operation.settings, embedder=HashingEmbedder()) as library,
    ):
        yield library


def document(name: str, texts: tuple[str, ...]) -> Entry:
    """Return a document; one called "line" keeps the ids of its passages when its texts change."""
    return entry(name, *texts, by_place=name.startswith("line"))


async def put(operation: Operation, report: Report) -> None:
    """Store documents one after the other, then update the indexes."""
    async with opened(operation) as library:
        for name, texts in operation.texts.items():
            await Ingestion(library).put([document(name, texts)])
            report(name)
        await library.catch_up(on_indexed=operation.on_indexed)


async def read(operation: Operation, report: Report) -> None:
    """Ingest a corpus as `sleuth ingest` does."""
    assert operation.file
    await ingest([operation.file], settings=operation.settings, embedder=HashingEmbedder())
    for name in operation.texts:
        report(name)


async def delete(operation: Operation, report: Report) -> None:
    """Delete documents one after the other."""
    async with opened(operation) as library:
        for name in operation.names:
            await Ingestion(library).delete([name])
            report(name)


async def rebuild(operation: Operation, report: Report) -> None:
    """Rebuild all indexes, as after a release with another index version."""
    _age_graph(operation.settings)
    async with opened(operation) as library:
        await Ingestion(library).rebuild(on_indexed=operation.on_indexed)


async def migrate(operation: Operation, report: Report) -> None:
    """Open the data of an older release, and migrate it to that of a later one."""
    _age_graph(operation.settings)
    _age_runs(operation.settings)
    report("running")
    async with opened(operation) as library, open_store(operation.settings):
        await library.catch_up()


def _age_graph(settings: Settings) -> None:
    for file in (settings.home / "mentions").glob("*.db"):
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE meta SET value = 0 WHERE key = 'version'")


def _age_runs(settings: Settings) -> None:
    """Undo the last migrations of LangGraph's tables in Postgres."""
    engine = open_engine(runs_url(settings))
    with engine.begin() as connection:
        if "checkpoint_migrations" in inspect(connection).get_table_names():
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                connection.exec_driver_sql(f"DROP INDEX IF EXISTS {table}_thread_id_idx")
            connection.exec_driver_sql("DELETE FROM checkpoint_migrations WHERE v > 5")
    engine.dispose()


async def ask(operation: Operation, report: Report) -> None:
    """Execute runs, each reported when it has ended."""
    async with open_store(operation.settings) as store:
        runs = RunService(store, Services(model=InProcess(), retriever=Shelf()))
        for name in operation.names:
            if not await store.threads.exists(name):
                await runs.start(RunRequest(question=QUESTION, method="par-rag", thread=name))
            await last_answer(runs.run(name))
            report(name)


async def thin_out(operation: Operation, report: Report) -> None:
    """Prune all but the last checkpoints of every run."""
    await _prune(operation.settings, keep_last=3)


async def remove(operation: Operation, report: Report) -> None:
    """Prune old runs."""
    await _prune(operation.settings, older_than=operation.older_than)


async def _prune(settings: Settings, *, older_than: float | None = None, keep_last: int | None = None) -> None:
    async with hold(settings.home, "alone", command="a test"), open_store(settings) as store:
        await prune(RunService(store), older_than=older_than, keep_last=keep_last)


async def look(operation: Operation, report: Report) -> None:
    """Search for the first text in every mode; print, as JSON, the mode with its results or error."""
    (text,), *_ = operation.texts.values()
    for mode in MODES:
        try:
            async with opened(operation, "search") as library:
                hits = await library.search(Query(text=text, k=1, mode=mode))
                report(json.dumps([mode, [hit.passage.document_id for hit in hits], ""]))
        except SleuthError as error:
            report(json.dumps([mode, [], str(error)]))


OPERATIONS: dict[str, Callable[[Operation, Report], Awaitable[None]]] = {
    each.__name__: each for each in (put, read, delete, rebuild, migrate, ask, thin_out, remove, look)
}


@dataclass(frozen=True)
class Done:
    """Results that a child reported before its end, whether it finished, and its duration in seconds."""

    names: tuple[str, ...]
    whole: bool
    seconds: float


def _execute(operation: Operation, kill_after: float | None) -> Done:
    lines: list[str] = []
    with child(run, operation) as (process, pipe):
        began = until = time.monotonic() + SECONDS
        with suppress(EOFError, ConnectionResetError):
            while "done" not in lines:
                if not pipe.poll(max(0.0, until - time.monotonic())):
                    assert kill_after is not None, f"{operation.kind} did not end within {SECONDS} s"
                    process.kill()
                lines.append(pipe.recv())
                if lines[-1] == "running":
                    began = time.monotonic()
                    until = began + (SECONDS if kill_after is None else kill_after)
        seconds = time.monotonic() - began
        if "done" not in lines:
            process.join()
            assert process.exitcode == -signal.SIGKILL, f"{operation.kind} ended by itself: {process.exitcode}"
    names = tuple(line for line in lines if line not in ("running", "done"))
    return Done(names, "done" in lines, seconds)


async def execute(operation: Operation, *, kill_after: float | None = None) -> Done:
    """Run an operation to its end, or kill it a number of seconds after its start."""
    return await asyncio.to_thread(_execute, operation, kill_after)
