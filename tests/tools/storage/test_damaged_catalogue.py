"""Damaged cells in the catalogue: errors that name the document, and no harm to the others."""

import sqlite3
from pathlib import Path

import entries
import pytest

from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import StoreDamaged
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Entry

MODES: tuple[Mode, ...] = ("keyword", "hybrid", "graph")


def entry(place: str) -> Entry:
    return entries.entry(place, f"The light stands at {place}.", by_place=True)


@pytest.fixture
async def home(tmp_path: Path) -> Settings:
    """Two documents without vectors, of which the tests damage `bad`."""
    settings = Settings(home=tmp_path / "home", embedder="none")
    async with await Collection.open(settings) as library:
        await library.put([entry("good"), entry("bad")])
        await library.catch_up()
        triples = library.triples(model="m")
        await triples.put({each.passages[0].fingerprint(): [("a", "b", "c")] for each in (entry("bad"),)}, version="1")
    return settings


def damage(home: Settings, table: str, cell: str, value: str, where: str) -> None:
    connection = sqlite3.connect(home.home / "catalogue.db")
    with connection:
        assert connection.execute(f'UPDATE sleuth_{table} SET "{cell}" = {value} WHERE {where}').rowcount
    connection.close()


DOCUMENT = [
    ("title", "x'ff00'"),
    ("text", "x'00'"),
    ("source", "x'ff'"),
    ("media_type", "x'ff'"),
    ("added_at", "x'01'"),
]
PASSAGE = [("start", "'zzz'"), ("end", "x'00'"), ("text", "x'ff00'"), ("title", "x'ff'"), ("start", "1.5")]
NOT_UTF8 = "CAST(x'ff41' AS TEXT)"


@pytest.mark.parametrize(("cell", "value"), DOCUMENT)
async def test_damaged_document_is_named_listed_and_replaced(home: Settings, cell: str, value: str) -> None:
    damage(home, "documents", cell, value, "id = 'bad'")
    async with await Collection.open(home) as library:
        assert [listed.id for listed in await library.documents()] == ["bad", "good"]
        with pytest.raises(StoreDamaged, match=rf"document bad is damaged .*{cell} .*sleuth docs delete bad"):
            await library.document("bad")
        assert (await library.document("good")).title == "good"
        await library.put([entry("bad")])
        assert (await library.document("bad")).title == "bad"


@pytest.mark.parametrize(("cell", "value"), PASSAGE)
async def test_damaged_passage_is_logged_and_not_found(home: Settings, cell: str, value: str) -> None:
    damage(home, "passages", cell, value, "document_id = 'bad'")
    async with await Collection.open(home) as library:
        for mode in MODES:
            hits = await library.search(Query(text="Which light stands at bad or good?", mode=mode))
            assert [hit.passage.id for hit in hits] == ["good#0"]
        with pytest.raises(StoreDamaged, match=rf"document bad is damaged .*{cell} .*passage bad#0"):
            await library.passages_of("bad")
        assert await library.delete(["bad"]) == 1
        await library.put([entry("bad")])
        assert (await library.search(Query(text="bad", mode="keyword")))[0].passage.id == "bad#0"


@pytest.mark.parametrize("table", ["documents", "passages"])
@pytest.mark.parametrize("cell", ["title", "text"])
async def test_text_that_is_not_utf8_hides_no_other_row(home: Settings, table: str, cell: str) -> None:
    damage(home, table, cell, NOT_UTF8, "id LIKE 'bad%'")
    async with await Collection.open(home) as library:
        assert len(await library.documents()) == 2
        assert (await library.document("bad")).id == "bad"
        hits = await library.search(Query(text="Which light stands at bad or good?", mode="hybrid"))
        assert {hit.passage.id for hit in hits} == {"good#0", "bad#0"}


@pytest.mark.parametrize("value", ["'{broken'", "'[1]'", "7", "x'ff'", NOT_UTF8, f"'{'[' * 20_000}'"])
async def test_damaged_journal_row_reindexes_its_document(home: Settings, value: str) -> None:
    async with await Collection.open(home) as library:
        await library.put([entry("new")])
        damage(home, "journal", "passage_ids", value, "document_id = 'new'")
        for mode in MODES:
            hits = await library.search(Query(text="Which light stands at new?", k=1, mode=mode))
            assert [hit.passage.id for hit in hits] == ["new#0"]


@pytest.mark.parametrize("value", ["'{broken'", "'[1]'", "'[[1, 2, 3]]'", "x'ff'", NOT_UTF8])
async def test_damaged_triples_are_read_again(home: Settings, value: str) -> None:
    mark = entry("bad").passages[0].fingerprint()
    async with await Collection.open(home) as library:
        triples = library.triples(model="m")
        assert await triples.get([mark], version="1") == {mark: [("a", "b", "c")]}
        damage(home, "triples", "triples", value, "model = 'm'")
        assert await triples.get([mark], version="1") == {}
        assert await triples.naming("a") == []
        assert library.triple_stats.triples().get("bad#0", []) == []
        await triples.put({mark: [("d", "e", "f")]}, version="1")
        assert await triples.get([mark], version="1") == {mark: [("d", "e", "f")]}


async def test_damaged_counts_restart_at_zero(home: Settings) -> None:
    damage(home, "meta", "value", "'zzz'", "key <> 'schema_version'")
    async with await Collection.open(home) as library:
        await library.put([entry("new")])
        await library.catch_up()
        assert library.triple_stats.change_counter() == 0
        assert await library.index_seconds("keyword") is not None


async def test_damaged_schema_version_is_named(home: Settings) -> None:
    damage(home, "meta", "value", "'zzz'", "key = 'schema_version'")
    with pytest.raises(StoreDamaged, match=r"schema version is 'zzz', not a number\. Put a backup"):
        await Collection.open(home)
