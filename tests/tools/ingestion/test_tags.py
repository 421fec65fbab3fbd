"""Named states of a collection: kept, listed, restored and deleted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

import sleuth
from sleuth.tools.collection import Collection
from sleuth.tools.errors import StoreError, UnknownName, UsageError
from sleuth.tools.ingestion.ingestion import Ingestion, ingest
from sleuth.tools.search import Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage import catalogue as catalogues
from sleuth.tools.storage.catalogue import Catalogue, Restored

TEXTS = {"light.md": "The light was built in 1903.", "fair.md": "The Kelp Fair is in May.", "mill.md": "A mill."}


def write(folder: Path, texts: Mapping[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def state_of(catalogue: Catalogue) -> dict[str, Any]:
    listed = catalogue.list_documents()
    return {each.id: (each, catalogue.get_document(each.id), catalogue.passages_of(each.id)) for each in listed}


async def found(settings: Settings, query: str) -> list[str]:
    hits = await sleuth.search(query, mode="keyword", settings=settings)
    return sorted(hit.passage.document_id for hit in hits)


async def test_restored_state_has_documents_fields_files_and_indexes(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", embedder="none", keep_originals=True)
    files = write(tmp_path / "files", TEXTS)
    await ingest([files], settings=settings, meta={"client": "ada"})
    before = await sleuth.documents(settings=settings)
    made = await sleuth.tag("before-cleanup", settings=settings)
    assert (made.name, made.documents) == ("before-cleanup", 3)

    await sleuth.delete("fair.md", settings=settings)
    (files / "fair.md").unlink()
    await ingest([write(files, {"light.md": "The light was moved.", "new.md": "New."})], settings=settings)
    await ingest([files / "mill.md"], settings=settings, meta={"client": "bo"})
    assert await found(settings, "Kelp Fair") == []

    restored = await sleuth.restore("before-cleanup", settings=settings)
    assert restored == Restored(added=1, updated=2, removed=1)
    assert await sleuth.documents(settings=settings) == before
    assert await found(settings, "Kelp Fair") == ["fair.md"]
    assert await found(settings, "built 1903") == ["light.md"]
    assert await found(settings, "New") == []
    async with await Collection.open(settings) as collection:
        assert len(await collection.documents(where="client=ada")) == 3
        for name, text in TEXTS.items():
            original = await collection.original(name)
            assert original
            assert original.read_text() == text
    assert await sleuth.restore("before-cleanup", settings=settings) == Restored(added=0, updated=0, removed=0)


async def test_files_of_a_tag_are_kept_until_it_is_deleted(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", embedder="none", keep_originals=True)
    await ingest([write(tmp_path / "files", TEXTS)], settings=settings)

    def copies() -> int:
        return sum(path.is_file() for path in (settings.home / "originals").rglob("*"))

    await sleuth.tag("all", settings=settings)
    await sleuth.delete(*TEXTS, settings=settings)
    assert copies() == 3
    assert [tag.name for tag in await sleuth.tags(settings=settings)] == ["all"]
    await sleuth.untag("all", settings=settings)
    assert copies() == 0
    assert await sleuth.tags(settings=settings) == []
    with pytest.raises(UnknownName, match="There is no tag 'all'"):
        await sleuth.restore("all", settings=settings)


async def test_vectors_follow_a_restored_state(tmp_path: Path) -> None:
    settings, embedder = Settings(home=tmp_path / "home", embedder="hashing"), HashingEmbedder()
    files = write(tmp_path / "files", TEXTS)
    await ingest([files], settings=settings, embedder=embedder)
    async with await Collection.open(settings, embedder=embedder) as collection, Ingestion(collection) as ingestion:
        await collection.tag("all")
        await ingestion.delete(["fair.md"])
        await ingestion.restore("all")
        hits = await collection.search(Query(text=TEXTS["fair.md"], k=1, mode="dense"))
    assert [hit.passage.document_id for hit in hits] == ["fair.md"]


@pytest.mark.parametrize("table", range(4))
def test_interrupted_tag_and_restore_change_nothing(
    catalogue: Catalogue, table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue.put_documents([entry("a", "one"), entry("b", "two")])
    catalogue.tag("first")
    catalogue.put_documents([entry("a", "other")])
    catalogue.delete_documents(["b"])
    before, head = state_of(catalogue), catalogue.head()

    class Cut(tuple[Any, ...]):
        def __iter__(self) -> Any:
            yield from list(super().__iter__())[:table]
            raise StoreError("cut")

    monkeypatch.setattr(catalogues, "_TAGGED", Cut(catalogues._TAGGED))
    for cut in (catalogue.restore, catalogue.tag):
        with pytest.raises(StoreError, match="cut"):
            cut("first" if cut == catalogue.restore else "second")
    assert (state_of(catalogue), catalogue.head()) == (before, head)
    assert [tag.name for tag in catalogue.tags()] == ["first"]


async def test_extracted_triples_are_restored(catalogue: Catalogue) -> None:
    one = entry("a", "Oda was born in Varn.")
    catalogue.put_documents([one])
    found = {one.passages[0].fingerprint(): [("Oda", "born in", "Varn")]}
    triples = catalogue.triples(model="small")
    await triples.put(found, version="1")
    catalogue.tag("first")
    catalogue.delete_documents(["a"])
    assert await triples.get(found, version="1") == {}
    catalogue.restore("first")
    catalogue.restore("first")
    assert await triples.get(found, version="1") == found


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a@b", "x" * 101])
def test_name_that_cannot_be_a_tag_is_refused(catalogue: Catalogue, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a tag"):
        catalogue.tag(name)


def test_tag_is_made_once_and_belongs_to_one_collection(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.put_documents([entry("a", "one")])
    catalogue.tag("first")
    with pytest.raises(UsageError, match="There is a tag first already"):
        catalogue.tag("first")
    with pytest.raises(UnknownName, match="Did you mean first"):
        catalogue.restore("frist")
    other = Catalogue(f"sqlite:///{tmp_path}/catalogue.db", owner="local", collection="def")
    assert other.tags() == []
    other.close()
