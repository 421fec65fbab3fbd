import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection import Collection
from sleuth.tools.documents.readers import media_type_of
from sleuth.tools.errors import StoreError
from sleuth.tools.ingestion.ingestion import Ingestion, ingest
from sleuth.tools.settings import Settings


@pytest.fixture
def keeping(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", embedder="none", keep_originals=True)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "light.md").write_bytes(b"# The light\r\n\r\nIt was built in 1903.\r\n")
    return folder


def copies(settings: Settings) -> list[Path]:
    return sorted(path for path in (settings.home / "originals").rglob("*") if path.is_file())


async def kept(settings: Settings, document: str) -> bytes | None:
    async with await Collection.open(settings) as library:
        path = await library.original(document)
        return path.read_bytes() if path else None


async def test_original_of_a_file_in_an_archive_is_that_file(keeping: Settings, files: Path) -> None:
    with zipfile.ZipFile(files / "all.zip", "w") as archive:
        archive.writestr("inner/fair.txt", "The Kelp Fair is in May.")
    await ingest([files / "all.zip"], settings=keeping)
    async with await Collection.open(keeping) as library:
        [document] = await library.documents()
    assert await kept(keeping, document.id) == b"The Kelp Fair is in May."


async def test_original_of_equal_files_is_deleted_with_the_last_of_them(keeping: Settings, files: Path) -> None:
    (files / "copy.md").write_bytes((files / "light.md").read_bytes())
    letters = keeping.model_copy(update={"collection": "letters"})
    await ingest([files], settings=keeping)
    await ingest([files / "light.md"], settings=letters)
    assert len(copies(keeping)) == 1
    async with await Collection.open(keeping) as library, await Collection.open(letters) as other:
        await Ingestion(library).delete(["light.md", "copy.md"])
        assert len(copies(keeping)) == 1
        await Ingestion(other).delete(["light.md"])
    assert copies(keeping) == []


async def test_originals_of_two_owners_are_apart(keeping: Settings, files: Path) -> None:
    ben = keeping.model_copy(update={"owner": "ben"})
    await ingest([files], settings=keeping)
    assert await kept(ben, "light.md") is None
    await ingest([files], settings=ben)
    assert len(copies(keeping)) == 2
    async with await Collection.open(keeping) as library:
        await Ingestion(library).delete(["light.md"])
    assert await kept(ben, "light.md")
    assert len(copies(keeping)) == 1


async def test_originals_of_another_catalogue_in_the_home_stay(keeping: Settings, files: Path) -> None:
    await ingest([files], settings=keeping)
    catalogue, aside = keeping.home / "catalogue.db", keeping.home / "aside.db"
    catalogue.rename(aside)
    (files / "light.md").write_text("It fell in 1950.")
    await ingest([files], settings=keeping)
    async with await Collection.open(keeping) as library:
        await Ingestion(library).delete(["light.md"])
    assert len(copies(keeping)) == 1
    aside.replace(catalogue)
    assert await kept(keeping, "light.md")


async def test_copy_that_cannot_be_written_is_an_error_with_advice(keeping: Settings, files: Path) -> None:
    keeping.home.mkdir()
    (keeping.home / "originals").write_text("a file in the place of the folder")
    with pytest.raises(StoreError, match=r"copy of .*light.md cannot be stored.*SLEUTH_KEEP_ORIGINALS=false"):
        await ingest([files], settings=keeping, embedder=HashingEmbedder())


def test_media_type_is_that_of_the_files_name() -> None:
    names = {"a.PDF": "application/pdf", "notes": "text/plain", "b.html": "text/html", "c.png": "image/png"}
    assert {name: media_type_of(Path(name)) for name in names} == names
    assert media_type_of(Path("d.unheard-of")) == "application/octet-stream"


async def test_original_is_kept_by_its_hash_until_it_is_replaced(keeping: Settings, files: Path) -> None:
    data = (files / "light.md").read_bytes()
    (files / "corpus.jsonl").write_text('{"id": "a", "text": "A line."}\n')  # lines have no original
    await ingest([files], settings=keeping)
    assert (await kept(keeping, "light.md"), await kept(keeping, "a")) == (data, None)
    assert [path.name for path in copies(keeping)] == [sha256(data).hexdigest()]
    (files / "light.md").write_text("It fell in 1950.")
    await ingest([files], settings=keeping)
    assert await kept(keeping, "light.md") == b"It fell in 1950."
    assert [path.name for path in copies(keeping)] == [sha256(b"It fell in 1950.").hexdigest()]


@pytest.mark.parametrize("keep", [None, False])
async def test_original_is_kept_once_asked_for(keeping: Settings, files: Path, keep: bool | None) -> None:
    plain = keeping.model_copy(update={"keep_originals": keep})
    await ingest([files], settings=plain)
    assert await kept(plain, "light.md") is None
    assert not (plain.home / "originals").exists()
    assert (await ingest([files], settings=keeping)).unchanged == 1
    await ingest([files], settings=plain)
    assert await kept(keeping, "light.md")


async def test_ingest_replaces_a_lost_copy_and_deletes_leftovers(keeping: Settings, files: Path) -> None:
    await ingest([files], settings=keeping)
    [copy] = copies(keeping)
    for name in ("0" * 64, f"{'1' * 64}.new"):
        (copy.parent / name).write_bytes(b"left by a killed ingest")
    copy.unlink()
    assert await kept(keeping, "light.md") is None
    await ingest([files], settings=keeping)
    assert copies(keeping) == [copy]
