"""A full disk and a read-only home: each command reports it in one line, and works once it can."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_process import Done
from four_hops import four_hops
from hashing_embedder import HashingEmbedder
from process import SLEUTH
from scripted_backend import Scripted, proxying
from test_ingest_store import corpus, line

from sleuth.graphs.ingestion.pipeline import ingest
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


# Root may write everywhere, unless it gives that up.
_POWERLESS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]


def freeze(home: Path) -> None:
    for path in [home, *home.rglob("*")]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def thaw(home: Path) -> None:
    home.chmod(0o755)
    for path in home.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def content(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        "docs list",
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in ("ingest {file}", "ask Where?", "docs delete a.txt")
        ),
    ],
)
async def test_command_reports_a_read_only_home(tmp_path: Path, command: str) -> None:
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root cannot be kept from writing without setpriv")
    home, file = tmp_path / "home", tmp_path / "a.txt"
    file.write_text("A stone bridge.", encoding="utf-8")
    settings = Settings(home=home, embedder="none")
    await ingest([file], settings=settings, embedder=HashingEmbedder())
    freeze(home)
    before = content(home)
    try:
        async with proxying(Scripted(four_hops)) as proxy:
            arguments = command.format(file=file).split()
            done = await asyncio.to_thread(sleuth, arguments, home, proxy.url)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == (0 if command == "docs list" and "a.txt" in done.stdout else 1), done
        assert done.returncode == 0 or ("SLEUTH_HOME" in done.stderr and "written" in done.stderr), done.stderr
    finally:
        thaw(home)
    assert content(home) == before


def sleuth(command: list[str], home: Path, model_url: str) -> subprocess.CompletedProcess[str]:
    given = {"SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": model_url}
    prefix = _POWERLESS if os.geteuid() == 0 else []
    return subprocess.run(
        [*prefix, *SLEUTH, *command], env=os.environ | given, capture_output=True, text=True, check=False
    )
