"""A full disk of a few megabytes: an ingest reports it, and works once there is space."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_process import Done
from hashing_embedder import HashingEmbedder
from test_ingest_store import corpus, line

from sleuth.tools.collection.collection import Collection
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.settings import Settings

DOCUMENTS = 300
MODES: tuple[Mode, ...] = ("keyword", "dense", "graph")
COMMAND = """
from hashing_embedder import HashingEmbedder
from sleuth.studio.cli import main
from sleuth.tools.collection import collection
assert collection.make_passage_embedder
collection.make_passage_embedder = lambda settings: HashingEmbedder()
main()
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with a size of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk of its own can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


async def ingested(file: Path, home: Path) -> Done:
    """`sleuth ingest` with vectors."""
    given = os.environ | {"SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", COMMAND, "ingest", str(file)]
    done = await asyncio.to_thread(subprocess.run, command, env=given, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.nightly
@pytest.mark.parametrize("room", [0, 50_000, 150_000, 400_000])
async def test_documents_are_ingested_once_there_is_disk_space(disk: Path, tmp_path: Path, room: int) -> None:
    file, home, ballast = corpus(tmp_path / "c.jsonl", DOCUMENTS), disk / "home", disk / "ballast"
    with ballast.open("wb") as filling:
        os.posix_fallocate(filling.fileno(), 0, shutil.disk_usage(disk).free - room)
    stopped = await ingested(file, home)
    assert "Traceback" not in stopped.err, stopped.err
    assert (stopped.status, stopped.out) == (1, ""), stopped
    assert "cannot be" in stopped.err.strip().splitlines()[-1], stopped.err
    ballast.unlink()
    assert (await ingested(file, home)).status == 0
    settings = Settings(home=home, embedder="hashing")
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        assert {each.id for each in await library.documents(limit=999)} == {f"p{n}" for n in range(DOCUMENTS)}
        await library.catch_up()
        for mode in MODES:
            hits = await library.search(Query(text=f"Title 7. {line(7)}", k=1, mode=mode))
            assert [hit.passage.id for hit in hits] == ["p7"]
        assert library.notes == []
