"""Damaged cells in the catalogue."""

import sqlite3
from pathlib import Path

import entries
import pytest

from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import StoreError
from sleuth.tools.search.retriever import Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Entry


def entry(place: str) -> Entry:
    return entries.entry(place, f"The light stands at {place}.", by_place=True)


@pytest.fixture
async def home(tmp_path: Path) -> Settings:
    """Two documents without vectors, of which the tests damage `bad`."""
    settings = Settings(home=tmp_path / "home", embedder="none")
    async with await Collection.open(settings) as library:
        await library.put([entry("good"), entry("bad")])
        await library.catch_up()
    return settings


def damage(home: Settings, table: str, cell: str, value: str, where: str) -> None:
    connection = sqlite3.connect(home.home / "catalogue.db")
    with connection:
        assert connection.execute(f'UPDATE sleuth_{table} SET "{cell}" = {value} WHERE {where}').rowcount
    connection.close()


NOT_UTF8 = "CAST(x'ff41' AS TEXT)"


@pytest.mark.parametrize("table", ["documents", "passages"])
@pytest.mark.parametrize("cell", ["title", "text"])
async def test_text_that_is_not_utf8_hides_no_other_row(home: Settings, table: str, cell: str) -> None:
    damage(home, table, cell, NOT_UTF8, "id LIKE 'bad%'")
    async with await Collection.open(home) as library:
        assert len(await library.documents()) == 2
        assert (await library.document("bad")).id == "bad"
        hits = await library.search(Query(text="Which light stands at bad or good?", mode="hybrid"))
        assert {hit.passage.id for hit in hits} == {"good#0", "bad#0"}


async def test_journal_that_cannot_be_parsed_names_the_backup(home: Settings) -> None:
    async with await Collection.open(home) as library:
        await library.put([entry("new")])
        damage(home, "journal", "passage_ids", "'{broken'", "document_id = 'new'")
        with pytest.raises(StoreError, match=r"catalogue\.db is damaged: .* Put a backup"):
            await library.search(Query(text="Which light stands at new?", mode="keyword"))
