"""Snapshots of the keyword index and the entity graph in Postgres: other homes fetch them instead of building."""

import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from entries import entry

from sleuth.tools.collection import Collection
from sleuth.tools.collection.index_set import MIN_PASSAGES
from sleuth.tools.search import Query
from sleuth.tools.search.vectors import NoEmbedder
from sleuth.tools.settings import Settings

pytestmark = [pytest.mark.integration, pytest.mark.postgres]

PASSAGES = MIN_PASSAGES + 100
Home = Callable[[str], Any]


@pytest.fixture
def home(postgres_url: str, tmp_path: Path) -> Home:
    """Return a function that opens one collection with a SLEUTH_HOME of its own."""
    collection = uuid4().hex
    return lambda name: Collection.open(
        Settings(home=tmp_path / name, database_url=postgres_url, collection=collection), embedder=NoEmbedder()
    )


def documents(first: int, number: int) -> list[Any]:
    texts = [f"The lighthouse number{n} was built by keeper{n}." for n in range(first, first + number)]
    return [entry(f"d{n}", text) for n, text in enumerate(texts, first)]


async def ingest(library: Collection, first: int, number: int) -> None:
    await library.put(documents(first, number))
    await library.catch_up()
    await library.finish_change()


async def build(library: Collection) -> dict[str, int]:
    """Update the indexes; return the number of passages that were indexed by index."""
    indexed: Counter[str] = Counter()
    await library.catch_up(on_indexed=lambda name, passages: indexed.update({name: passages}))
    return {name: number for name, number in indexed.items() if number}


async def found(library: Collection, number: int) -> list[str]:
    """Return the best passage of keyword and of graph search for a document."""
    queries = [Query(text=f"Who built number{number}?", k=1, mode=mode) for mode in ("keyword", "graph")]
    return [(await library.search(each))[0].passage.document_id for each in queries]


@pytest.mark.nightly
async def test_second_home_fetches_the_indexes_and_builds_only_changes(home: Home) -> None:
    async with await home("one") as one:
        await ingest(one, 0, PASSAGES)
        async with await home("two") as two:
            assert await build(two) == {}
            assert await found(two, 7) == ["d7", "d7"]
        await ingest(one, PASSAGES, 20)
        async with await home("three") as three:
            assert await build(three) == {"keyword": 20, "graph": 20}
            assert await found(three, PASSAGES + 7) == [f"d{PASSAGES + 7}"] * 2
            assert three.notes == []
        async with await home("two") as again:  # it has most passages already
            assert await build(again) == {"keyword": 20, "graph": 20}


async def test_unusable_snapshots_are_ignored(home: Home, postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with await home("one") as one:
        await ingest(one, 0, PASSAGES)
        mine = (one._settings.collection,)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "UPDATE sleuth_snapshot_chunks SET data = substr(data, 2) WHERE collection = %s AND index = 'graph'",
                mine,
            )
            connection.execute(
                "UPDATE sleuth_snapshots SET change = 'another' WHERE collection = %s AND index = 'keyword'", mine
            )
        with caplog.at_level(logging.WARNING):
            async with await home("two") as two:
                assert await build(two) == {"keyword": PASSAGES, "graph": PASSAGES}
                assert await found(two, 7) == ["d7", "d7"]
        assert "checksum is wrong" in caplog.text
        async with await home("three") as three:  # the second home has replaced the snapshots
            assert await build(three) == {}


async def test_a_new_snapshot_replaces_the_last_one(home: Home, postgres_url: str) -> None:
    async with await home("one") as one:
        await ingest(one, 0, PASSAGES)
        await ingest(one, PASSAGES, MIN_PASSAGES)
        with psycopg.connect(postgres_url) as connection:
            rows = connection.execute(
                "SELECT index, passages FROM sleuth_snapshots WHERE collection = %s ORDER BY index",
                (one._settings.collection,),
            ).fetchall()
            chunks = connection.execute(
                "SELECT count(*) FROM sleuth_snapshot_chunks WHERE collection = %s", (one._settings.collection,)
            ).fetchone()
        assert rows == [("graph", PASSAGES + MIN_PASSAGES), ("keyword", PASSAGES + MIN_PASSAGES)]
        assert chunks == (2,)
