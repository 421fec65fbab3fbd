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
from chat_scene import knowing
from cli_process import Done
from cli_process import sleuth as cli
from four_hops import four_hops
from full_disk import full_disk
from hashing_embedder import HashingEmbedder
from process import SLEUTH
from scripted_backend import Scripted, proxying
from serve_scene import FILES, QUESTION
from small_collection import passage
from test_ingest_store import corpus, line

from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import StoreBusy, StoreError
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.disk import FULL_DISK
from sleuth.tools.storage.locks import hold
from sleuth.tools.text.names import PassageNames

DOCUMENTS = 300
MODES: tuple[Mode, ...] = ("keyword", "dense", "graph")
COMMAND = """
from hashing_embedder import HashingEmbedder
from sleuth.studio.cli import main
from sleuth.tools.collection import collection
from sleuth.tools.ingestion import ingestion
assert collection.make_embedder and ingestion.make_embedder
collection.make_embedder = ingestion.make_embedder = lambda settings: HashingEmbedder()
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
        assert library.indexes.notes == []


@pytest.mark.parametrize("mentions", [1, 200_000])  # the disk is full at the commit, and before it
def test_entity_graph_reports_a_full_disk_and_can_be_used_again(tmp_path: Path, mentions: int) -> None:
    names = [PassageNames({}, list(range(mentions)))]
    index = GraphIndex(tmp_path / "graph.db", lambda passages: names[: len(passages)])
    with full_disk(), pytest.raises(StoreError, match=r"graph.db cannot be written: (disk I/O|database or disk)"):
        index.apply(upsert=[passage("a", "A", "Text.")], delete=[])
    assert index.count() == 0
    index.apply(upsert=[passage("a", "A", "Text.")], delete=[])
    assert index.ids() == {"a"}
    index.close()


async def test_home_is_locked_without_disk_space(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    with full_disk():
        async with hold(tmp_path, "exclusive", command="sleuth docs delete"):
            with pytest.raises(StoreBusy, match="in use by another process"):
                async with hold(tmp_path, "shared", command="sleuth search"):
                    pass
    assert list((tmp_path / "locks").glob("*.json")) == []


@pytest.mark.nightly
@pytest.mark.parametrize("room", [0, 40_000, 160_000])
async def test_documents_and_runs_can_be_deleted_on_a_full_disk(disk: Path, tmp_path: Path, room: int) -> None:
    """Searching needs no space, and each failed deletion states the folders that make room for it."""
    home, files = disk / "home", [corpus(tmp_path / "c.jsonl", DOCUMENTS), tmp_path / "light.md"]
    files[1].write_text(FILES["light.md"], encoding="utf-8")
    env = {"SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none"}
    async with knowing() as proxy:
        env["SLEUTH_MODEL_URL"] = proxy.url
        ingest = await cli("ingest", "--keep-originals", *map(str, files), **env)
        asked = await cli("ask", QUESTION, "--thread", "a", "--method", "plain-rag", **env)
        assert (ingest.status, asked.status) == (0, 0), (ingest, asked)
    with (disk / "ballast").open("wb") as filling:
        os.posix_fallocate(filling.fileno(), 0, shutil.disk_usage(disk).free - room)
    found = await cli("search", "Pellowrig", **env)
    assert "light.md" in found.out or (room, found.status) == (0, 1), found
    deletions = [("docs", "delete", "light.md"), ("runs", "delete", "a")]
    first = [await cli(*command, **env) for command in deletions]
    for done in first:
        assert "Traceback" not in done.err, done.err
        assert not done.status or str(home / "mentions") in done.err or FULL_DISK in done.err, done.err
    assert any(done.status for done in first), first
    for folder in ("keywords", "mentions"):
        assert f"`{folder}`" in FULL_DISK
        shutil.rmtree(home / folder)
    for command in reversed(deletions):  # deleting documents fills the room with new indexes
        await cli(*command, **env)
    assert "light.md" not in (await cli("docs", "list", **env)).out
    assert (await cli("runs", "list", "--json", **env)).json() == []
    assert [path for path in (home / "originals").rglob("*") if path.is_file()] == []
    assert list((home / "locks").glob("*.json")) == []
    (disk / "ballast").unlink()
    assert "p7" in (await cli("search", "Title 7", "--mode", "graph", **env)).out


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
