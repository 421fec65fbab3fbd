"""`sleuth backup` and `sleuth restore`: whole or not at all, while others work, and after a kill anywhere."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from four_hops import InProcess
from hashing_embedder import HashingEmbedder
from preloaded import child
from stored_runs import finished, interrupt, open_runs, services

from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.backup import CHROMA_DATABASE, back_up, restore, verify
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.collection import Collection, index_set
from sleuth.tools.collection.index_set import hold_indexes
from sleuth.tools.errors import StoreBusy, StoreDamaged, StoreError, UsageError
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.search import Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold
from sleuth.tools.types import Hit

TEXTS = {f"light{at}.txt": f"The lamp number {at} was built by Edric Gannow in 18{at:02}." for at in range(12)}
OTHER = "Something else: a lamp of granite."
QUERY = Query(text="lamp number 7", k=3, mode="hybrid")
SECRET = "a-secret-of-the-server"


async def fill(settings: Settings) -> None:
    """Ingest documents with their originals."""
    folder = settings.home / "sources"
    await asyncio.to_thread(folder.mkdir, parents=True)
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    async with (
        hold(settings.home, "exclusive", command="a test"),
        await Collection.open(settings, embedder=HashingEmbedder()) as library,
    ):
        await Ingestion(library).run([folder])
        await library.catch_up()


async def searched(settings: Settings) -> tuple[list[Hit], list[str]]:
    """The hits of a query, and the texts that had to be embedded for it."""
    embedder = HashingEmbedder()
    async with await Collection.open(settings, embedder=embedder) as library:
        return list(await library.search(QUERY)), embedder.embedded


def originals(settings: Settings) -> dict[str, bytes]:
    folder = settings.home / "originals"
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def made(home: Path) -> Settings:
    return Settings(home=home, embedder="hashing", keep_originals=True, api_keys=f"anna:{SECRET}")


async def test_run_is_resumed_after_restore_and_nothing_is_embedded_again(
    here: Settings, there: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "backup.zip"
    async with open_runs(here) as runs:
        _, expected = await finished(runs)
        id = await runs.start(RunRequest(question=expected.question, method="par-rag"))
        await interrupt(runs, id, InProcess(hold_at=4))
        manifest = await back_up(here, file)  # while the store is open
    assert manifest == verify(file)
    assert manifest.counts == {"documents": 12, "passages": 12, "runs": 2, "originals": 12}
    before, _ = await searched(here)
    assert (await restore(there, file)).counts == manifest.counts
    assert await searched(there) == (before, [])
    assert originals(there) == originals(here)
    async with open_store(there) as store:
        assert {thread.state for thread in await store.threads.list_newest(limit=9)} == {"done", "interrupted"}
        answer = await last_answer(RunService(store, services()).run(id))
    assert (answer.text, answer.citations) == (expected.text, expected.citations)
    async with open_runs(there) as runs:  # numbers of rows continue behind those of the backup
        await finished(runs)
    await replace_documents(there)


@pytest.mark.nightly
async def test_backup_during_writes_is_of_one_moment(tmp_path: Path) -> None:
    here, there = made(tmp_path / "here"), made(tmp_path / "there")
    async with open_runs(here) as runs:
        await finished(runs)
        working = asyncio.create_task(_ask_repeatedly(runs))
        for number in range(4):
            file = tmp_path / f"{number}.zip"
            await back_up(here, file)
            await restore(there, file, force=True)
            async with open_store(there) as store:
                for thread in await store.threads.list_newest(limit=100):
                    if thread.state == "done":
                        assert (await RunService(store).answer(thread.id)).status == "answered"
                    else:
                        assert (await last_answer(RunService(store, services()).run(thread.id))).text
        working.cancel()
        await asyncio.wait([working])


async def _ask_repeatedly(runs: RunService) -> None:
    while True:
        await finished(runs)


EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.move", "sqlite3.connect")
"""Python's audit events of what can change a file."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A backup or a restore; its process dies at the event of this number."""

    kind: str
    settings: Settings
    file: Path
    die_at: int | None = None


def run(job: Job, pipe: Connection) -> None:
    """Send the number of events at the end."""
    seen = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in EVENTS and not str(arguments[0]).endswith((".py", ".pyc", ".so", "/__pycache__")):
            seen += 1
            if seen == job.die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    work = back_up(job.settings, job.file) if job.kind == "back_up" else restore(job.settings, job.file, force=True)
    asyncio.run(work)
    pipe.send(seen)


def attempt(job: Job) -> int | None:
    """Run a child; return the number of its events, or None if it was killed."""
    with child(run, job) as (process, pipe):
        try:
            return int(pipe.recv())
        except (EOFError, ConnectionResetError):
            process.join()
            assert process.exitcode == -9
            return None


def members(file: Path) -> list[str]:
    verify(file)
    with ZipFile(file) as archive:
        return archive.namelist()


def moments(events: int, most: int = 16) -> list[int]:
    """Return the numbers of events at which to kill: all, or evenly spaced ones and the last."""
    return sorted(
        {round(1 + at * (events - 1) / (most - 1)) for at in range(most)}
        if events > most
        else set(range(1, events + 1))
    )


@pytest.fixture
async def here(tmp_path: Path) -> Settings:
    """A home with documents."""
    await fill(settings := made(tmp_path / "here"))
    return settings


@pytest.fixture
def there(tmp_path: Path) -> Settings:
    """An empty home."""
    return made(tmp_path / "there")


@pytest.fixture
async def file(here: Settings, tmp_path: Path) -> Path:
    """An archive of the documents."""
    await back_up(here, tmp_path / "documents.zip")
    return tmp_path / "documents.zip"


async def test_killed_backup_leaves_no_archive(here: Settings, tmp_path: Path) -> None:
    async with open_runs(here) as runs:
        await finished(runs)
    file = tmp_path / "backup.zip"
    events = attempt(Job(kind="back_up", settings=here, file=file))
    assert events
    wanted = members(file)
    for moment in moments(events):
        file.unlink()
        if attempt(Job(kind="back_up", settings=here, file=file, die_at=moment)) is None and not file.exists():
            await back_up(here, file)
        assert members(file) == wanted
    left = await asyncio.to_thread(lambda: [*file.with_name("backup.zip.partial").glob("*")])
    assert left == []  # a kill after the archive got its name leaves an empty folder at most


@pytest.mark.nightly
async def test_killed_restore_is_refused_until_repeated(here: Settings, there: Settings, tmp_path: Path) -> None:
    async with open_runs(here) as runs:
        await finished(runs)
    file = tmp_path / "backup.zip"
    await back_up(here, file)
    before, _ = await searched(here)
    await replace_documents(there)
    events = attempt(Job(kind="restore", settings=there, file=file))
    assert events
    seen = set()
    for moment in moments(events):
        await replace_documents(there)
        assert attempt(Job(kind="restore", settings=there, file=file, die_at=moment)) is None
        try:
            hits, _ = await searched(there)
            seen.add("restored" if hits == before else "unchanged")
            assert hits == before or [hit.passage.text for hit in hits] == [OTHER]
        except StoreError as error:
            assert "sleuth restore" in str(error)
            seen.add("refused")
        await restore(there, file, force=True)
        assert await searched(there) == (before, [])
        assert originals(there) == originals(here)
        async with open_store(there) as store:
            assert [thread.state for thread in await store.threads.list_newest(limit=9)] == ["done"]
    assert {"unchanged", "refused"} <= seen


async def replace_documents(settings: Settings) -> None:
    """Delete all documents and store another one."""
    async with (
        hold(settings.home, "exclusive", command="a test"),
        await Collection.open(settings, embedder=HashingEmbedder()) as library,
    ):
        listed = await library.documents()
        await Ingestion(library).delete([each.id for each in listed])
        await asyncio.to_thread((settings.home / "else.txt").write_text, OTHER)
        await Ingestion(library).run([settings.home / "else.txt"])
        hits = await library.search(Query(text="granite", k=1, mode="hybrid"))
    assert [hit.passage.text for hit in hits] == [OTHER]


async def test_damaged_archives_are_refused_and_change_nothing(here: Settings, there: Settings, file: Path) -> None:
    damaged, whole = there.home.with_name("damaged.zip"), await asyncio.to_thread(file.read_bytes)
    cuts = [whole[: round(len(whole) * at / 30)] for at in range(30)]
    flips = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(60, len(whole), len(whole) // 40)]
    for data in [*cuts, *flips]:
        damaged.write_bytes(data)
        try:
            await restore(there, damaged, force=True)
        except StoreError:
            assert not (there.home / "catalogue.db").exists()
            assert not (there.home / "restore").exists()
        else:  # a bit of a date in the table of contents
            assert await searched(there) == await searched(here)
            await asyncio.to_thread((there.home / "catalogue.db").unlink)


def test_archive_whose_last_member_is_cut_off_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cut.zip"
    with ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", "{}")
    whole = file.read_bytes()
    at = whole.index(b"PK\x01\x02") + 20  # its size in the table of contents
    file.write_bytes(whole[:at] + (9_999).to_bytes(4, "little") * 2 + whole[at + 8 :])
    with pytest.raises(StoreError, match=r"cut.zip is not a complete backup: .+\. Use another backup"):
        verify(file)


async def test_backup_to_a_missing_folder_names_the_folder(here: Settings, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "x.zip"
    with pytest.raises(StoreError, match=rf"{missing} cannot be written: .*No such .*Choose a folder that exists"):
        await back_up(here, missing)
    assert not missing.parent.exists()


def rewritten(file: Path, **fields: object) -> Path:
    """An archive with other fields in its manifest, and a member with a path outside."""
    new = file.with_suffix(".new")
    with ZipFile(file) as before, ZipFile(new, "w") as after:
        after.writestr("../outside", "text")
        for name in before.namelist():
            content = before.read(name)
            after.writestr(name, json.dumps(json.loads(content) | fields) if name == "manifest.json" else content)
    return new


async def test_members_outside_of_the_home_are_not_restored(here: Settings, there: Settings, file: Path) -> None:
    await restore(there, rewritten(file))
    assert await searched(there) == await searched(here)
    assert not (there.home.parent / "outside").exists()


async def test_existing_data_needs_force_and_no_other_process(here: Settings, file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists already"):
        await back_up(here, file)
    with pytest.raises(UsageError, match="--force"):
        await restore(here, file)
    async with open_store(here):  # an idle server
        with pytest.raises(StoreBusy, match="sleuth serve"):
            await restore(here, file, force=True)
    await restore(here, file, force=True)
    async with hold(here.home, "exclusive", command="sleuth ingest"):
        with pytest.raises(StoreBusy, match="sleuth ingest"):
            await back_up(here.model_copy(update={"wait": 0.0}), tmp_path / "none.zip")
    with pytest.raises(UsageError, match="no documents and no runs"):
        await back_up(made(tmp_path / "empty"), tmp_path / "none.zip")


async def test_backup_waits_a_limited_time_for_the_indexes(
    here: Settings, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_set, "_INDEXING_SECONDS", 0.1)
    with hold_indexes(here.home), pytest.raises(StoreBusy, match="indexes"):
        await back_up(here, tmp_path / "none.zip")
    await back_up(here, tmp_path / "second.zip")


async def test_postgres_is_refused_with_what_to_do(here: Settings, file: Path, tmp_path: Path) -> None:
    server = here.model_copy(update={"database_url": "postgresql://nowhere/x"})
    with pytest.raises(UsageError, match="pg_dump"):
        await back_up(server, tmp_path / "none.zip")
    with pytest.raises(UsageError, match="pg_restore"):
        await restore(server, file, force=True)


def test_backup_is_private_and_has_no_secret(here: Settings, file: Path) -> None:
    assert file.stat().st_mode & 0o077 == 0
    with ZipFile(file) as archive:
        assert all(SECRET.encode() not in archive.read(name) for name in archive.namelist())
    with closing(sqlite3.connect(here.home / "catalogue.db")) as connection:
        connection.execute("PRAGMA user_version")  # the original is still in use


@pytest.mark.parametrize(
    ("name", "advice"), [("catalogue.db", "earlier backup"), (CHROMA_DATABASE, "delete .*/chroma")]
)
@pytest.mark.parametrize("cut", [0.5, 1])
async def test_damaged_database_is_named_with_what_to_do(
    here: Settings, tmp_path: Path, name: str, advice: str, cut: float
) -> None:
    damaged, whole = here.home / name, await asyncio.to_thread((here.home / name).read_bytes)
    middle = len(whole) // 8192 * 4096
    damaged.write_bytes((whole[:middle] + b"\xff" * 4096 + whole[middle + 4096 :])[: round(len(whole) * cut)])
    with pytest.raises(StoreDamaged, match=rf"^.*{name} is damaged \(.+\), so no backup was written\. .*{advice}.*$"):
        await back_up(here, tmp_path / "none.zip")
    assert not (tmp_path / "none.zip").exists()
