"""Synchronization with a folder, compared with a model of the folder."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.ingestion.folder_diff import FolderDiff
from sleuth.tools.ingestion.folder_sync import IngestReport, apply_diff, compare_folder, follow_folder
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search import Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

FOLDERS = ("", "Fairs", "fairs", "fairs/past")
NAMES = ("kelp.md", "mill.txt", "ünder.md", "a b.txt")
TEXTS = ("The kelp fair is held in May.", "The mill grinds corn for the fair.", "# Fair\n\nNobody came.")
ARCHIVE = "box.zip"
CORPORA = ("lines.jsonl", "more.jsonl")
IDS = ("first", "second")
OUTSIDE = "This note on a fair is not in the folder."


async def synchronize(folder: Path, settings: Settings) -> tuple[FolderDiff, IngestReport]:
    diff = await compare_folder(folder, settings=settings)
    return diff, await apply_diff(diff, settings=settings, mass_removal=True)


async def stored_texts(settings: Settings) -> dict[str, str]:
    """Return the texts of all documents by the path of their file; lines of corpora by path and id."""
    async with await Collection.open(settings) as library:
        documents = [await library.document(listed.id) for listed in await library.documents()]
    lines = {each.source: f"{each.source}: {each.id}" for each in documents if each.source.endswith(".jsonl")}
    named = {f"{each.source}: {each.id}" if each.source in lines else each.source: each.text for each in documents}
    assert len(named) == len(documents)
    return named


class FolderMachine(RuleBasedStateMachine):
    """A folder, its model in a dictionary, and a collection that is synchronized with it now and then."""

    def __init__(self) -> None:
        super().__init__()
        self._place = TemporaryDirectory()
        root = Path(self._place.name)
        self._folder, self._beside = root / "notes", root / "notes-2"
        self._settings = Settings(home=root / "home", embedder="none")
        self._runner = asyncio.Runner()
        self._files: dict[str, str] = {}
        self._corpora: dict[str, dict[str, str]] = {}
        self._archived: dict[str, str] = {}
        for folder in (self._beside, *(self._folder / name for name in FOLDERS)):
            folder.mkdir(parents=True, exist_ok=True)
        (self._beside / "kelp.md").write_text(OUTSIDE, encoding="utf-8")

    @initialize()
    def ingest_a_file_outside(self) -> None:
        self._runner.run(ingest([self._beside], settings=self._settings))

    @rule(folder=st.sampled_from(FOLDERS), name=st.sampled_from(NAMES), text=st.sampled_from(TEXTS))
    def write(self, folder: str, name: str, text: str) -> None:
        """Create a file, edit it, or write the same text again."""
        path = self._folder / folder / name
        path.write_text(text, encoding="utf-8")
        self._files[str(path)] = text

    @rule(name=st.sampled_from(CORPORA), lines=st.dictionaries(st.sampled_from(IDS), st.sampled_from(TEXTS)))
    def write_corpus(self, name: str, lines: dict[str, str]) -> None:
        """Write a corpus, or remove it if there are no lines."""
        path = self._folder / name
        rows = [json.dumps({"id": id_, "text": text}) for id_, text in lines.items()]
        path.write_text("\n".join(rows), encoding="utf-8")
        self._corpora[str(path)] = lines
        if not lines:
            path.unlink()
            del self._corpora[str(path)]

    @rule(members=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS)))
    def write_archive(self, members: dict[str, str]) -> None:
        """Write a zip file, or remove it if there are no files in it."""
        path = self._folder / ARCHIVE
        with ZipFile(path, "w") as archive:
            for name, text in members.items():
                archive.writestr(name, text)
        self._archived = {str(path / name): text for name, text in members.items()}
        if not members:
            path.unlink()

    @precondition(lambda self: self._files)
    @rule(data=st.data(), folder=st.sampled_from(FOLDERS), name=st.sampled_from(NAMES))
    def move(self, data: st.DataObject, folder: str, name: str) -> None:
        """Rename a file or move it to another folder, perhaps over another file."""
        old, new = Path(data.draw(st.sampled_from(sorted(self._files)))), self._folder / folder / name
        old.replace(new)
        self._files[str(new)] = self._files.pop(str(old))

    @precondition(lambda self: self._files)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(self._files)))
        Path(path).unlink()
        del self._files[path]

    @precondition(lambda self: self._files)
    @rule(data=st.data(), seconds=st.integers(-1_000_000, 1_000_000))
    def touch(self, data: st.DataObject, seconds: int) -> None:
        path = data.draw(st.sampled_from(sorted(self._files)))
        time = Path(path).stat().st_mtime + seconds
        os.utime(path, (time, time))

    @rule()
    def ingest_folder(self) -> None:
        """Ingesting adds and updates documents, and leaves those of removed files."""
        self._runner.run(ingest([self._folder], settings=self._settings))

    @rule()
    def synchronize(self) -> None:
        before = self._runner.run(stored_texts(self._settings))
        diff, report = self._runner.run(synchronize(self._folder, self._settings))
        after = self._runner.run(stored_texts(self._settings))
        assert after == self._expected()
        assert diff.is_empty() == (before == after)
        assert len(diff.removed) == report.removed == len(before) + report.added - len(after)
        assert diff.unchanged + len(diff.added) + len(diff.updated) == len(after) - 1
        assert self._runner.run(compare_folder(self._folder, settings=self._settings)).is_empty()

    def _expected(self) -> dict[str, str]:
        """Return the texts of all files, and of each line the last one with its id."""
        lines = {id_: (path, text) for path, rows in sorted(self._corpora.items()) for id_, text in rows.items()}
        named = {f"{path}: {id_}": text for id_, (path, text) in lines.items()}
        return self._files | named | self._archived | {str(self._beside / "kelp.md"): OUTSIDE}

    async def _found(self) -> set[str]:
        async with await Collection.open(self._settings) as library:
            hits = await library.search(Query(text="fair came", k=100, mode="keyword"))
            return {(await library.document(hit.passage.document_id)).text for hit in hits}

    def teardown(self) -> None:
        self.synchronize()
        assert self._runner.run(self._found()) == set(self._expected().values())
        self._runner.close()
        self._place.cleanup()


class TestFolderMachine(FolderMachine.TestCase):
    settings = hypothesis_settings(stateful_step_count=20, max_examples=3)


@pytest.mark.nightly
class TestFolderMachineLonger(FolderMachine.TestCase):
    settings = hypothesis_settings(stateful_step_count=20, max_examples=15)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", embedder="none")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in zip(NAMES, TEXTS, strict=False):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


async def test_moved_document_keeps_its_triples(folder: Path, settings: Settings) -> None:
    await synchronize(folder, settings)
    async with await Collection.open(settings) as library:
        (passage,) = await library.passages_of(NAMES[0])
        await library.triples(model="small").put({passage.fingerprint(): [("fair", "is in", "May")]}, version="1")
    text = (folder / NAMES[0]).read_text(encoding="utf-8")
    (folder / "old").mkdir()
    (folder / NAMES[0]).replace(folder / "old" / NAMES[0])
    diff, _ = await synchronize(folder, settings)
    assert (diff.added, diff.removed) == ((f"old/{NAMES[0]}",), {NAMES[0]: NAMES[0]})
    async with await Collection.open(settings) as library:
        (passage,) = await library.passages_of(f"old/{NAMES[0]}")
        assert passage.text == text
        assert await library.triples(model="small").get([passage.fingerprint()], version="1")


async def test_documents_of_uploads_are_not_removed(folder: Path, tmp_path: Path) -> None:
    settings = Settings(home=folder / "home", embedder="none")
    upload = folder / "home" / "uploads" / "note.md"
    upload.parent.mkdir(parents=True)
    upload.write_text("An upload.", encoding="utf-8")
    await ingest([upload], settings=settings)
    upload.unlink()
    diff = await compare_folder(folder, settings=settings)
    assert not diff.removed


async def test_only_a_folder_can_be_synchronized(folder: Path, settings: Settings) -> None:
    with pytest.raises(UsageError, match="is a file"):
        await compare_folder(folder / NAMES[0], settings=settings)
    with pytest.raises(UsageError, match="no file or folder"):
        await compare_folder(folder / "missing", settings=settings)


async def test_only_changed_files_are_compared(folder: Path, settings: Settings) -> None:
    await synchronize(folder, settings)
    for name in NAMES[:2]:
        (folder / name).write_text("Other text.", encoding="utf-8")
    (folder / NAMES[2]).unlink()
    diff = await compare_folder(folder, settings=settings, changed=frozenset({folder / NAMES[0]}))
    assert (diff.updated, list(diff.removed.values())) == ((NAMES[0],), [NAMES[2]])


@pytest.mark.timeout(60)
async def test_changes_are_followed_when_the_store_is_free(folder: Path, settings: Settings) -> None:
    stop = asyncio.Event()
    followed: AsyncIterator[tuple[FolderDiff, IngestReport]] = follow_folder(folder, settings=settings, stop=stop)
    async with aclosing(followed):  # type: ignore[type-var]
        async with hold(settings.home, "shared", command="test"):
            waiting = asyncio.ensure_future(anext(followed))
            await asyncio.sleep(0.1)
            (folder / NAMES[3]).write_text("New.", encoding="utf-8")
            await asyncio.wait([waiting], timeout=3)
            assert not waiting.done()
        diff, report = await waiting
        assert (len(diff.added), report.added) == (4, 4)
        (folder / NAMES[0]).unlink()
        diff, report = await anext(followed)
        assert (list(diff.removed), report.removed) == ([NAMES[0]], 1)
        stop.set()
        assert [each async for each in followed] == []


async def test_documents_of_files_that_became_unreadable_are_kept(folder: Path, settings: Settings) -> None:
    with ZipFile(folder / ARCHIVE, "w") as archive:
        archive.writestr("kelp.md", "In the archive.")
    lines = '{"id": "first", "text": "One."}\n{"id": "second", "text": "Two."}\n'
    (folder / CORPORA[0]).write_text(lines, encoding="utf-8")
    await synchronize(folder, settings)
    before = await stored_texts(settings)
    (folder / NAMES[0]).write_bytes(b"")
    (folder / ARCHIVE).write_bytes(b"damaged")
    (folder / CORPORA[0]).write_text(lines.removesuffix(', "text": "Two."}\n'), encoding="utf-8")
    diff, _ = await synchronize(folder, settings)
    assert not (diff.added or diff.updated or diff.removed)
    assert len(diff.failures) == 3
    assert all(any(reason in str(failure) for failure in diff.failures) for reason in ("is empty", "is not a zip file"))
    assert await stored_texts(settings) == before


@pytest.fixture
async def moved(folder: Path, settings: Settings, tmp_path: Path) -> Path:
    """The folder, ingested and moved."""
    await ingest([folder], settings=settings)
    (tmp_path / "new").mkdir()
    return (tmp_path / "notes").rename(tmp_path / "new" / "notes")


async def test_moved_folder_keeps_its_documents_and_nothing_is_embedded(moved: Path, settings: Settings) -> None:
    _, report = await synchronize(moved, settings)
    assert (report.updated, report.passages) == (3, 0)
    assert await stored_texts(settings) == {str(moved / name): text for name, text in zip(NAMES, TEXTS, strict=False)}
    assert (await compare_folder(moved, settings=settings)).is_empty()


async def test_copied_or_changed_files_are_other_documents(moved: Path, tmp_path: Path, settings: Settings) -> None:
    (moved / NAMES[0]).write_text("Another text about kelp.")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / NAMES[1]).write_text(TEXTS[1])
    _, report = await synchronize(moved, settings)
    assert (report.added, report.updated) == (2, 1)
    line, *copies = report.warnings
    assert f"sleuth docs delete {NAMES[0]}" in line and "is gone" in line
    assert all("has the same text as" in each for each in copies)


@pytest.mark.parametrize(
    ("gone", "new", "refused"),
    [(8, 0, "8 of 8"), (5, 0, "5 of 8"), (4, 0, ""), (8, 8, "8 of 8"), (5, 1, "5 of 8"), (4, 1, "")],
)
async def test_most_documents_of_a_folder_are_only_removed_with_an_option(
    tmp_path: Path, settings: Settings, gone: int, new: int, refused: str
) -> None:
    for number in range(8):
        (tmp_path / f"n{number}.md").write_text(f"Note {number} on the fair.")
    settings = settings.model_copy(update={"home": tmp_path / ".home"})
    await ingest([tmp_path], settings=settings)
    for number in range(gone):
        (tmp_path / f"n{number}.md").unlink()
    for number in range(new):
        (tmp_path / f"new{number}.md").write_text(f"New note {number}.")
    diff, before = await compare_folder(tmp_path, settings=settings), await stored_texts(settings)
    assert f"{diff.lost} of {diff.stored}" == (refused or "0 of 8")
    if refused:
        with pytest.raises(UsageError, match=rf"{refused} documents of .* mounted .*--allow-mass-removal"):
            await apply_diff(diff, settings=settings)
        assert await stored_texts(settings) == before
    report = await apply_diff(diff, settings=settings, mass_removal=bool(refused))
    assert (report.removed, len(await stored_texts(settings))) == (gone, 8 - gone + new)


async def test_renamed_files_and_folders_count_as_no_removal(folder: Path, settings: Settings) -> None:
    await ingest([folder], settings=settings)
    for name in NAMES[:3]:
        (folder / name).rename(folder / f"new {name}")
    diff = await compare_folder(folder, settings=settings)
    assert (len(diff.removed), len(diff.added), diff.lost) == (3, 3, 0)
    assert (await apply_diff(diff, settings=settings)).removed == 3


async def test_path_with_dots_names_the_same_documents(folder: Path, tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "beside").mkdir()
    before = await ingest([folder], settings=settings)
    report = await ingest([tmp_path / "beside" / ".." / "." / folder.name], settings=settings)
    assert (before.added, report.added, report.unchanged) == (3, 0, 3)


async def test_lock_files_of_office_programs_are_left_out_in_silence(folder: Path, settings: Settings) -> None:
    for name in ("~$plan.docx", "~$rates.xlsx", ".~lock.plan.odt#"):
        (folder / name).write_bytes(b"\x0cHarbour User".ljust(54))
    report = await ingest([folder, folder / "~$plan.docx"], settings=settings)
    assert (report.added, report.failed, report.passed_over, report.warnings) == (3, 0, [], [])


ODD = {
    "end.ics": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Fair\nDTEND:20260230\nEND:VEVENT\nEND:VCALENDAR\n",
    "date.md": '---\ndate: "Mon, 01 Jan 2024 00:00:00 +99999999999999999999"\n---\nThe fair.\n',
    "first day.ics": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Fair\nDTEND:00010101\nEND:VEVENT\nEND:VCALENDAR\n",
    "long.srt": f"1\n{'9' * 5_000}:00:01,000 --> 00:00:02,000\nThe fair.\n",
}


async def test_odd_files_end_neither_an_ingest_nor_a_synchronization(folder: Path, settings: Settings) -> None:
    for name, text in ODD.items():
        (folder / name).write_text(text)
    _, report = await synchronize(folder, settings)
    assert (report.added, report.failed) == (5, 2), report.warnings
    assert all("is not a .ics file" in line or "is not a .srt file" in line for line in report.warnings)
    report = await ingest([folder], settings=settings)
    assert (report.unchanged, report.failed) == (5, 2)


async def test_unreadable_file_is_named_once_per_content(folder: Path, settings: Settings) -> None:
    broken, archive = folder / "broken.pdf", folder / "box.zip"
    broken.write_text("no PDF")
    with ZipFile(archive, "w") as packed:
        packed.writestr("inner.pdf", "no PDF either")
        packed.writestr("inner.md", TEXTS[0])

    async def named() -> tuple[list[str], tuple[str, ...]]:
        diff = await compare_folder(folder, settings=settings)
        failures = [*diff.failures]
        await apply_diff(
            diff, settings=settings, on_progress=lambda each: failures.extend([each.failure] if each.failure else [])
        )
        return sorted({each.source for each in failures}), diff.unreadable

    assert await named() == ([f"{archive}/inner.pdf", str(broken)], ())
    for _ in range(2):
        names, unreadable = await named()
        assert (names, sorted(unreadable)) == ([], ["box.zip", "broken.pdf"])
    broken.write_text("another text that is no PDF")
    assert (await named())[0] == [str(broken)]
    broken.with_suffix(".md").write_text(TEXTS[1])
    broken.unlink()
    assert await named() == ([], ("box.zip",))
    assert str(folder / "broken.md") in await stored_texts(settings)


async def test_unreadable_file_is_not_the_one_whose_name_begins_its_name(folder: Path, settings: Settings) -> None:
    broken = folder / "mill.txt: scan.pdf"
    broken.write_text("no PDF")
    assert (folder / "mill.txt").is_file()
    for failures, unreadable in (((), ()), ((), (broken.name,))):
        diff, report = await synchronize(folder, settings)
        assert (diff.failures, diff.unreadable) == (failures, unreadable)
        assert report.failed == (not unreadable)


async def test_own_fields_are_those_of_the_documents_that_differ(folder: Path, settings: Settings) -> None:
    await synchronize(folder, settings)
    (folder / "new.md").write_text("A new text.")
    diff = await compare_folder(folder, settings=settings)
    await apply_diff(diff, settings=settings, meta={"Client": "Ada"})
    async with await Collection.open(settings) as library:
        assert {each.id: dict(each.meta or {}) for each in await library.documents() if each.meta} == {
            "new.md": {"client": "Ada"}
        }
