import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection import Collection
from sleuth.tools.collection.index_set import hold_indexes
from sleuth.tools.errors import StoreBusy, StoreError
from sleuth.tools.ingestion.ingestion import Ingestion, ingest
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import LockMode, hold

INDEXED: tuple[Mode, ...] = ("keyword", "dense", "hybrid", "graph")
HOLDER = """
import asyncio, sys
from pathlib import Path
from sleuth.tools.storage.locks import hold

async def main():
    async with hold(Path(sys.argv[1]), sys.argv[2], command=f"sleuth {sys.argv[2]}"):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


def another(home: Path, mode: LockMode) -> subprocess.Popen[str]:
    """A process that holds the lock until it is spoken to."""
    command = [sys.executable, "-c", HOLDER, str(home), mode]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


async def taken(home: Path, mode: LockMode) -> str | None:
    """None where the lock could be had, else why not."""
    try:
        async with hold(home, mode, command="sleuth test"):
            return None
    except StoreBusy as error:
        return str(error)


async def test_lock_is_waited_for_with_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = another(tmp_path, "exclusive")
    released = threading.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(release_later, writer, released))
        async with hold(tmp_path, "shared", command="sleuth test", wait=60):
            assert released.is_set()
    (line,) = caplog.messages
    assert line.startswith(f"{tmp_path} is in use by `sleuth exclusive` (process {writer.pid}, since ")
    assert line.endswith(". Waiting up to 60 s.")
    writer = another(tmp_path, "exclusive")
    with pytest.raises(StoreBusy, match="sleuth exclusive"):
        async with hold(tmp_path, "shared", command="sleuth test", wait=1):
            raise AssertionError("it is held")
    writer.communicate("\n")


def release_later(process: subprocess.Popen[str], released: threading.Event) -> None:
    time.sleep(1)
    released.set()
    process.communicate("\n")


async def test_readers_share_and_a_writer_excludes(tmp_path: Path) -> None:
    reader = another(tmp_path, "shared")
    assert await taken(tmp_path, "shared") is None
    message = await taken(tmp_path, "exclusive")
    assert message is not None and f"`sleuth shared` (process {reader.pid}, since " in message
    reader.communicate("\n")
    assert await taken(tmp_path, "exclusive") is None
    writer = another(tmp_path, "exclusive")
    for mode in ("shared", "exclusive", "alone"):
        message = await taken(tmp_path, mode)
        assert message is not None and f"`sleuth exclusive` (process {writer.pid}, since " in message
    assert await taken(tmp_path, "search") is None
    writer.communicate("\n")
    assert await taken(tmp_path, "shared") is None


async def test_ingest_waits_for_no_search_and_a_rebuild_does(tmp_path: Path) -> None:
    settings, notes = Settings(home=tmp_path / "home", wait=0), tmp_path / "notes.txt"
    notes.write_text("The light stands at Tarn.", encoding="utf-8")
    reader = another(settings.home, "search")
    assert (await ingest([notes], settings=settings, embedder=HashingEmbedder())).added == 1
    with pytest.raises(StoreBusy, match="in use by `sleuth search`"):
        await ingest([], settings=settings, embedder=HashingEmbedder(), rebuild=True)
    reader.communicate("\n")
    await ingest([], settings=settings, embedder=HashingEmbedder(), rebuild=True)


async def test_search_during_an_ingest_finds_what_is_indexed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(home=tmp_path, wait=0)
    async with await Collection.open(settings, embedder=HashingEmbedder()) as collection:
        ingestion = Ingestion(collection)
        await ingestion.put([entry("one", "The first light stands at Tarn.")])
        await collection.catch_up()
        await ingestion.put([entry("two", "The second light stands at Tarn.")])
    writer = another(tmp_path, "exclusive")
    with hold_indexes(tmp_path):  # as an ingest does while it embeds
        assert await found(settings) == {mode: {"one"} for mode in INDEXED}
    (line,) = caplog.messages
    assert line.startswith(f"{tmp_path} is in use by `sleuth exclusive` (process {writer.pid}, since ")
    writer.communicate("\n")
    assert await found(settings) == {mode: {"one", "two"} for mode in INDEXED}


async def found(settings: Settings) -> dict[Mode, set[str]]:
    """The documents that a process of its own finds, by mode."""
    async with (
        hold(settings.home, "search", command="sleuth search"),
        await Collection.open(settings, embedder=HashingEmbedder()) as collection,
    ):
        hits = {mode: await collection.search(Query(text="Which light is at Tarn?", mode=mode)) for mode in INDEXED}
    return {mode: {hit.passage.document_id for hit in each} for mode, each in hits.items()}


async def test_dead_holder_with_our_pid_is_not_named(tmp_path: Path) -> None:
    """As in a restarted container, where each process has the same id as before."""
    dead = another(tmp_path, "exclusive")
    dead.kill()
    dead.communicate()
    (card,) = (tmp_path / "locks").glob("*.json")
    card.write_text(json.dumps(json.loads(card.read_text()) | {"pid": os.getpid()}))
    living = another(tmp_path, "shared")  # the dead one has released the lock
    message = await taken(tmp_path, "exclusive")
    assert message is not None and "`sleuth shared`" in message and "`sleuth exclusive`" not in message
    living.communicate("\n")
    assert not [*(tmp_path / "locks").glob("*.json")]


async def test_tasks_of_a_process_share_the_lock_and_an_error_releases_it(tmp_path: Path) -> None:
    async with hold(tmp_path, "shared", command="one"), hold(tmp_path, "shared", command="two"):
        message = await taken(tmp_path, "exclusive")
    assert message is not None and "`one`" in message and "`two`" in message
    assert await asyncio.gather(*(taken(tmp_path, "shared") for _ in range(8))) == [None] * 8
    with pytest.raises(OSError, match="mine"):
        async with hold(tmp_path, "exclusive", command="x"):
            raise OSError("mine")
    assert await taken(tmp_path, "exclusive") is None
    assert not list((tmp_path / "locks").glob("*.json"))
    file = tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises(StoreError, match=f"{os.sep}file.* cannot be written"):
        async with hold(file, "shared", command="x"):
            pass
