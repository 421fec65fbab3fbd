"""Deeds on a store in a process of its own, each acknowledged when it is done, and killed wherever the test likes."""

import asyncio
import json
import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import later_release
from entries import entry
from four_hops import QUESTION, InProcess, Shelf
from hashing_embedder import HashingEmbedder
from sqlalchemy import inspect

from sleuth.graphs.ingestion.graph import ingest
from sleuth.graphs.persistence.store import open_store, runs_url
from sleuth.graphs.runs.pruning import prune
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import SleuthError
from sleuth.tools.search.index import IndexName
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Entry
from sleuth.tools.storage.database import open_engine
from sleuth.tools.storage.locks import hold

MODES: tuple[Mode, ...] = ("keyword", "dense", "hybrid", "graph")


@dataclass(frozen=True, kw_only=True)
class Deed:
    """An operation: `kind` is a function below. `texts` are by document, or of the only file that is read.

    `die_at`: dies when this number of passages has gone into an index, before it has written down that they have.
    `release`: how many releases after the present one does it. `older_than`: after how many seconds runs are old.
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


Tell = Callable[[str], None]


def run(deed: Deed, pipe: Connection) -> None:
    """Print "running", then the names of durable results, and at the end "done"."""
    asyncio.run(_run(deed, pipe))


async def _run(deed: Deed, pipe: Connection) -> None:
    later_release.become(deed.release)
    pipe.send("running")
    await DEEDS[deed.kind](deed, pipe.send)
    pipe.send("done")


async def _open(stack: AsyncExitStack, deed: Deed) -> Collection:
    await stack.enter_async_context(hold(deed.settings.home, "exclusive", command="a test"))
    return await stack.enter_async_context(await Collection.open(deed.settings, embedder=HashingEmbedder()))


def document(name: str, texts: tuple[str, ...]) -> Entry:
    """Those called "line" keep the ids of their passages when the texts change."""
    return entry(name, *texts, by_place=name.startswith("line"))


async def put(deed: Deed, tell: Tell) -> None:
    """Documents one after the other, then the indexes."""
    async with AsyncExitStack() as stack:
        library = await _open(stack, deed)
        for name, texts in deed.texts.items():
            await library.put([document(name, texts)])
            tell(name)
        await library.catch_up(on_indexed=deed.on_indexed)


async def read(deed: Deed, tell: Tell) -> None:
    """Ingest a corpus as `sleuth ingest` does; repeat it, as its message asks, if it resumed an older one."""
    assert deed.file
    while (await ingest([deed.file], settings=deed.settings, embedder=HashingEmbedder())).resumed:
        pass
    for name in deed.texts:
        tell(name)


async def delete(deed: Deed, tell: Tell) -> None:
    """Documents one after the other."""
    async with AsyncExitStack() as stack:
        library = await _open(stack, deed)
        for name in deed.names:
            await library.delete([name])
            tell(name)


async def rebuild(deed: Deed, tell: Tell) -> None:
    """Rebuild all indexes, as after a release with another index version."""
    _age_graph(deed.settings)
    async with AsyncExitStack() as stack:
        library = await _open(stack, deed)
        await library.rebuild(on_indexed=deed.on_indexed)


async def migrate(deed: Deed, tell: Tell) -> None:
    """Opens what an older release has left, and brings it to the state of a later one."""
    _age_graph(deed.settings)
    _age_runs(deed.settings)
    tell("running")
    async with AsyncExitStack() as stack:
        library = await _open(stack, deed)
        await stack.enter_async_context(open_store(deed.settings))
        await library.catch_up()


def _age_graph(settings: Settings) -> None:
    for file in (settings.home / "mentions").glob("*.db"):
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE meta SET value = 0 WHERE key = 'version'")


def _age_runs(settings: Settings) -> None:
    """Without the indexes that came later."""
    engine = open_engine(runs_url(settings))
    with engine.begin() as connection:
        found = set(inspect(connection).get_table_names())
        if "sleuth_threads" in found:
            for index in ("sleuth_threads_newest", "sleuth_threads_parent"):
                connection.exec_driver_sql(f"DROP INDEX IF EXISTS {index}")
        if "checkpoint_migrations" in found:
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                connection.exec_driver_sql(f"DROP INDEX IF EXISTS {table}_thread_id_idx")
            connection.exec_driver_sql("DELETE FROM checkpoint_migrations WHERE v > 5")
    engine.dispose()


async def ask(deed: Deed, tell: Tell) -> None:
    """Runs, each acknowledged when it has ended."""
    async with open_store(deed.settings) as store:
        runs = RunService(store, Services(model=InProcess(), retriever=Shelf()))
        for name in deed.names:
            if not await store.threads.exists(name):
                await runs.start(QUESTION, "par-rag", thread=name)
            await last_answer(runs.run(name))
            tell(name)


async def thin_out(deed: Deed, tell: Tell) -> None:
    """All but the last checkpoints of every run go."""
    async with (
        hold(deed.settings.home, "exclusive", command="a test"),
        open_store(deed.settings) as store,
    ):
        await prune(RunService(store), older_than=None, keep_last=3)


async def remove(deed: Deed, tell: Tell) -> None:
    """Old runs go."""
    async with (
        hold(deed.settings.home, "exclusive", command="a test"),
        open_store(deed.settings) as store,
    ):
        await prune(RunService(store), older_than=deed.older_than, keep_last=None)


async def look(deed: Deed, tell: Tell) -> None:
    """Search for the first text in every mode; print, as JSON, the mode with its results or error."""
    (text,), *_ = deed.texts.values()
    for mode in MODES:
        try:
            async with AsyncExitStack() as stack:
                library = await _open(stack, deed)
                hits = await library.search(Query(text=text, k=1, mode=mode))
                tell(json.dumps([mode, [hit.passage.document_id for hit in hits], ""]))
        except SleuthError as error:
            tell(json.dumps([mode, [], str(error)]))


DEEDS: dict[str, Callable[[Deed, Tell], Awaitable[None]]] = {
    each.__name__: each for each in (put, read, delete, rebuild, migrate, ask, thin_out, remove, look)
}
