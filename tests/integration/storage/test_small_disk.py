"""A full disk of a few megabytes: each command reports it, and works once there is space."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_process import Done, sleuth
from folders import PYTHONPATH
from four_hops import QUESTION, four_hops
from hashing_embedder import HashingEmbedder
from recording_proxy import proxying
from scripted_backend import Scripted
from test_ingest_store import corpus, line

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.collection.collection import Collection
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.settings import Settings

MEGABYTES = 48
DOCUMENTS = 300
MODES: tuple[Mode, ...] = ("keyword", "dense", "graph")
ROOM = [0, 40_000]
"""Bytes that are left."""
ALIKE = ("status", "text", "notes", "citations")
"""Fields that are equal in equal runs."""
COMMAND = """
from hashing_embedder import HashingEmbedder
from sleuth.studio.cli import main
from sleuth.tools.collection import collection
assert collection.make_passage_embedder
collection.make_passage_embedder = lambda settings: HashingEmbedder()
main()
"""


class Disk:
    """A folder with a size of its own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self._ballast = folder / "ballast"

    def fill(self, room: int) -> None:
        """Leave this number of bytes free."""
        free = shutil.disk_usage(self._ballast.parent).free
        with self._ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free - room)

    def make_room(self) -> None:
        """Free the space again."""
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={MEGABYTES}m"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk of its own can be mounted here: {mounted.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
async def env(disk: Disk) -> AsyncIterator[dict[str, str]]:
    """The variables of a command; a model server answers."""
    async with proxying(Scripted(four_hops)) as proxy:
        yield {"SLEUTH_HOME": str(disk.home), "SLEUTH_MODEL_URL": proxy.url, "SLEUTH_EMBEDDER": "none"}


def assert_explained(done: Done) -> None:
    """Either the command had enough space, or it reports the full disk in one line."""
    assert "Traceback" not in done.err, done.err
    if done.status:
        assert (done.status, done.out) == (1, ""), done
        assert "cannot be" in done.err.strip().splitlines()[-1], done.err


async def said(*arguments: str, **env: str) -> Any:
    done = await sleuth(*arguments, "--json", **env)
    assert done.status == 0, done.err
    return done.json()


async def filled(disk: Disk, tmp_path: Path) -> None:
    settings = Settings(home=disk.home, embedder="hashing")
    await ingest([corpus(tmp_path / "c.jsonl", DOCUMENTS)], settings=settings, embedder=HashingEmbedder())


async def assert_whole(disk: Disk, gone: set[str] | None = None) -> None:
    """Every document but these is there, and found."""
    settings = Settings(home=disk.home, embedder="hashing")
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        listed = {each.id for each in await library.documents(limit=2 * DOCUMENTS)}
        assert listed == {f"p{n}" for n in range(DOCUMENTS)} - (gone or set())
        await library.catch_up()
        for mode in MODES:
            hits = await library.search(Query(text=f"Title 7. {line(7)}", k=1, mode=mode))
            assert [hit.passage.id for hit in hits] == ["p7"]
        assert library.notes == []


async def embedding(file: Path, env: dict[str, str]) -> Done:
    """`sleuth ingest` with vectors."""
    paths = os.pathsep.join(filter(None, (PYTHONPATH, os.environ.get("PYTHONPATH"))))
    given = os.environ | env | {"PYTHONPATH": paths}
    command = [sys.executable, "-c", COMMAND, "ingest", str(file)]
    done = await asyncio.to_thread(subprocess.run, command, env=given, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.nightly
@pytest.mark.parametrize("room", [0, 50_000, 150_000, 400_000])
async def test_documents_are_ingested_once_there_is_disk_space(
    disk: Disk, tmp_path: Path, env: dict[str, str], room: int
) -> None:
    file = corpus(tmp_path / "c.jsonl", DOCUMENTS)
    disk.fill(room)
    stopped = await embedding(file, env)
    assert_explained(stopped)
    assert stopped.status
    disk.make_room()
    assert (await embedding(file, env)).status == 0
    await assert_whole(disk)


@pytest.mark.nightly
@pytest.mark.parametrize("room", ROOM)
async def test_run_resumes_once_there_is_disk_space(disk: Disk, tmp_path: Path, env: dict[str, str], room: int) -> None:
    await filled(disk, tmp_path)
    expected = await said("ask", QUESTION, "--method", "par-rag", "--thread", "first", **env)
    disk.fill(room)
    stopped = await sleuth("ask", QUESTION, "--method", "par-rag", "--thread", "second", **env)
    assert_explained(stopped)
    assert stopped.status
    disk.make_room()
    known = {run["id"] for run in await said("runs", "list", **env)}
    again = (
        ("resume", "second") if "second" in known else ("ask", QUESTION, "--method", "par-rag", "--thread", "second")
    )
    answer = await said(*again, **env)
    assert [answer[name] for name in ALIKE] == [expected[name] for name in ALIKE]
    await assert_whole(disk)


@pytest.mark.parametrize("room", ROOM)
async def test_documents_are_deleted_completely_or_not_at_all(
    disk: Disk, tmp_path: Path, env: dict[str, str], room: int
) -> None:
    await filled(disk, tmp_path)
    wanted = [f"p{n}" for n in range(100, 200)]
    disk.fill(room)
    stopped = await sleuth("docs", "delete", *wanted, **env)
    assert_explained(stopped)
    assert room or stopped.status
    disk.make_room()
    listed = {each["id"] for each in await said("docs", "list", "--limit", "999", **env)}
    left = sorted(listed & set(wanted))
    assert left in ([], wanted)
    if left:
        await said("docs", "delete", *wanted, **env)
    await assert_whole(disk, set(wanted))
