"""Vectors in each place: files of Chroma, a Chroma server, and Postgres."""

import asyncio
import os
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from chroma_fixture import ChromaServer
from chromadb.telemetry import opentelemetry
from entries import entry
from hashing_embedder import HashingEmbedder
from postgres_fixture import database
from preloaded import child

from sleuth.studio.cli.commands.doctor import examine
from sleuth.tools.collection.collection import Collection
from sleuth.tools.collection.index_set import open_vectors
from sleuth.tools.errors import EmbedderChanged, StoreError, UsageError
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.search.retriever import Query
from sleuth.tools.search.vectors import chroma_index, index, pgvector_index
from sleuth.tools.search.vectors.chroma_index import ChromaIndex
from sleuth.tools.search.vectors.index import VectorIndex
from sleuth.tools.settings import Settings

PASSAGES = [entry(name, text).passages[0] for name, text in (("a", "a stone bridge"), ("b", "a water mill"))]
WORDS = ("amber", "bridge", "candle", "dune", "ember", "ferry", "garden", "harbor", "island", "jetty", "kiln", "mill")
ENTRIES = [
    entry(f"d{number:03}", f"{WORDS[number % 12]} {WORDS[number // 12]} {number % 7}") for number in range(12 * 12)
]


@pytest.fixture
def pgvector(settings: Settings, pgvector_url: str) -> Iterator[Settings]:
    """Settings with vectors in an own database."""
    with database(pgvector_url) as url:
        yield settings.model_copy(update={"database_url": url, "vectors": "pgvector"})
        pgvector_index.engine_of(url).dispose()


@pytest.fixture(params=["files", "chroma", pytest.param("pgvector", marks=pytest.mark.postgres)])
def there(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    if request.param == "pgvector":
        return request.getfixturevalue("pgvector")  # type: ignore[no-any-return]
    url = request.getfixturevalue("chroma_url") if request.param == "chroma" else None
    return settings.model_copy(update={"chroma_url": url, "collection": uuid4().hex})


async def test_collection_keeps_its_vectors_there(there: Settings) -> None:
    question = Query(text="bridge. A stone bridge.", k=5, mode="dense")
    async with await Collection.open(there, embedder=HashingEmbedder()) as library:
        await Ingestion(library).put([entry("bridge", "A stone bridge."), entry("mill", "A water mill.")])
        best, other = await library.search(question)
        assert (best.passage.document_id, other.passage.document_id) == ("bridge", "mill")
        assert best.score == pytest.approx(1.0, abs=1e-3)
        assert other.score < best.score
        await Ingestion(library).delete(["bridge"])
    is_in_files = there.vectors == "chroma" and not there.chroma_url
    assert (there.home / "chroma").exists() == is_in_files
    embedder = HashingEmbedder()
    async with await Collection.open(there, embedder=embedder) as library:
        hits = await library.search(question)
        assert [hit.passage.document_id for hit in hits] == ["mill"]
        assert embedder.embedded == []


def test_vectors_store_position_embedder_and_dimension(there: Settings) -> None:
    vectors = open_vectors(there, HashingEmbedder("one", dimension=16))
    assert (vectors.applied(), vectors.dimension(), vectors.count()) == (0, None, 0)
    for _ in range(2):
        vectors.apply(upsert=PASSAGES, delete=["never there"])
    vectors.set_reached(14)
    vectors.set_applied(12)
    again = open_vectors(there, HashingEmbedder("two", dimension=16))
    assert (again.applied(), again.reached(), again.dimension()) == (12, 14, 16)
    assert again.ids() == {passage.id for passage in PASSAGES}
    with pytest.raises(EmbedderChanged, match=r"one.*two"):
        again.check_embedder()
    again.clear()
    again.check_embedder()
    assert (again.applied(), again.dimension(), again.count()) == (0, None, 0)
    if there.vectors == "pgvector":
        assert vectors.search("amber", 3) == []  # another process's index


# Chroma


def opened(place: Path | str, embedder: HashingEmbedder) -> ChromaIndex:
    return ChromaIndex(place, owner="local", collection="default", embedder=embedder)


def test_discarded_collection_leaves_no_files(tmp_path: Path) -> None:
    index = opened(tmp_path, HashingEmbedder())
    index.apply(upsert=PASSAGES, delete=[])
    (old,) = (path for path in tmp_path.iterdir() if path.is_dir())
    index.clear()
    assert not old.exists()
    index.apply(upsert=PASSAGES, delete=[])
    index.close()
    again = opened(tmp_path, HashingEmbedder())
    assert again.ids() == {passage.id for passage in PASSAGES}
    assert len(again.search("a. a stone bridge", 5)) == 2
    again.close()


async def library(home: Path, owner: str) -> Collection:
    return await Collection.open(Settings(home=home, owner=owner), embedder=HashingEmbedder(dimension=64))


def test_vectors_of_another_length_are_refused(tmp_path: Path) -> None:
    index = opened(tmp_path, HashingEmbedder(dimension=16))
    index.apply(upsert=PASSAGES[:1], delete=[])
    index.close()
    longer = opened(tmp_path, HashingEmbedder(dimension=32))
    with pytest.raises(EmbedderChanged, match=r"16 numbers.*32 numbers"):
        longer.apply(upsert=PASSAGES[1:], delete=[])
    with pytest.raises(EmbedderChanged, match=r"16 numbers.*32 numbers"):
        longer.search("a stone bridge", 5)
    longer.close()


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("localhost:8000", UsageError, "SLEUTH_CHROMA_URL"),
        ("ftp://host", UsageError, "SLEUTH_CHROMA_URL"),
        ("http://127.0.0.1:1", StoreError, r"Chroma server at http://127\.0\.0\.1:1"),
    ],
)
def test_unusable_server_is_explained(url: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        opened(url, HashingEmbedder())


def change(home: Path, _pipe: Connection) -> None:
    """Rebuild the vectors of Anna, and add a document to hers and Ben's."""

    async def work() -> None:
        for owner in ("anna", "ben"):
            async with await library(home, owner) as opened:
                if owner == "anna":
                    await Ingestion(opened).rebuild()
                await Ingestion(opened).put([entry("new", "the new text")])
                await opened.catch_up()

    asyncio.run(work())


@pytest.mark.nightly
async def test_search_follows_a_rebuild_and_new_documents_of_another_process(tmp_path: Path) -> None:
    question = Query(text="text", mode="dense")
    async with await library(tmp_path, "anna") as anna, await library(tmp_path, "ben") as ben:
        for each in (anna, ben):
            await Ingestion(each).put([entry("old", "the old text")])
            assert len(await each.search(question)) == 1
        with child(change, tmp_path) as (process, _):
            await asyncio.to_thread(process.join, 60)
            assert process.exitcode == 0
        for each in (ben, anna, ben):
            assert len(await each.search(question)) == 2


def test_client_ignores_the_proxies_of_the_environment(chroma_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "nothing.invalid")
    monkeypatch.setattr(chroma_index, "_served", chroma_index._served.__wrapped__)
    assert chroma_index.connect(chroma_url).heartbeat() > 0
    assert "no_proxy" not in os.environ


@pytest.mark.nightly
@pytest.mark.parametrize("empty", [False, True])
async def test_restarted_server_is_used_again(settings: Settings, own_chroma: ChromaServer, empty: bool) -> None:
    """Also one that comes back empty, as one without a place of its own to keep things does."""
    on_server = settings.model_copy(update={"chroma_url": own_chroma.url})
    question = Query(text="bridge. A stone bridge.", k=2, mode="dense")
    async with await Collection.open(on_server, embedder=HashingEmbedder()) as library:
        await Ingestion(library).put([entry("bridge", "A stone bridge.")])
        assert len(await library.search(question)) == 1
        own_chroma.stop()
        with pytest.raises(StoreError, match="SLEUTH_CHROMA_URL"):
            await library.search(question)
        await Ingestion(library).put([entry("mill", "A water mill.")])
        with pytest.raises(StoreError, match="SLEUTH_CHROMA_URL"):
            await library.catch_up()
        for _ in range(2):  # once with a document to come in, once with none
            own_chroma.stop()
            if empty:
                own_chroma.forget()
            own_chroma.start()
            for _ in range(2):
                hits = await library.search(question)
                assert [hit.passage.document_id for hit in hits] == ["bridge", "mill"]
        await Ingestion(library).delete(["mill"])
        assert [hit.passage.document_id for hit in await library.search(question)] == ["bridge"]


async def test_variables_of_chroma_start_no_telemetry(
    settings: Settings, own_chroma: ChromaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMA_OTEL_COLLECTION_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("CHROMA_OTEL_GRANULARITY", "all")
    on_server = settings.model_copy(update={"chroma_url": own_chroma.url})
    async with await Collection.open(on_server, embedder=HashingEmbedder()) as library:
        await Ingestion(library).put([entry("bridge", "A stone bridge.")])
    assert opentelemetry.tracer is None


# Postgres


def tables(url: str | None) -> list[str]:
    query = "SELECT relname FROM pg_class WHERE relname LIKE 'sleuth_vectors_%' ORDER BY 1"
    with psycopg.connect(str(url)) as connection:
        return [str(name) for (name,) in connection.execute(query)]


async def test_graph_of_many_vectors_finds_the_nearest(pgvector: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same passages as a comparison of all of them, without a filter and with small and large ones."""
    monkeypatch.setattr(pgvector_index, "MAX_EXACT", 100)
    async with await Collection.open(pgvector, embedder=HashingEmbedder()) as library:
        for batch in (ENTRIES[:120], ENTRIES[120:]):
            await Ingestion(library).put(batch)
            await library.catch_up()
            assert not has_neighbor_graph(pgvector)  # much slower to extend than to build
        await Ingestion(library).finish()
        assert has_neighbor_graph(pgvector)
        dense = library.indexes.ready("dense", lambda *_: None)
        assert isinstance(dense, VectorIndex)
        all_ids = frozenset(dense.ids())
        assert len(all_ids) == len(ENTRIES)
        some = frozenset(sorted(all_ids)[::2])
        for asked in ("amber bridge 3", "mill dune 0", "kiln"):
            exact = dense.restricted(all_ids).search(asked, len(all_ids))
            assert shared(dense.search(asked, 10), exact[:10]) >= 9
            few = [hit for hit in exact if hit[0] in some][:10]
            assert dense.restricted(some).search(asked, 10) == few
            with monkeypatch.context() as patched:
                patched.setattr(index, "MAX_EXACT", 0)
                assert shared(dense.restricted(some).search(asked, 10), few) >= 9


def has_neighbor_graph(pgvector: Settings) -> bool:
    return any(name.endswith("_numbers") for name in tables(pgvector.database_url))


def shared(found: list[tuple[str, float]], exact: list[tuple[str, float]]) -> int:
    """Return how many have a score of the exact search, which other passages may have too."""
    return sum(any(score == pytest.approx(other) for _, other in exact) for _, score in found)


async def test_rebuild_replaces_the_vectors(pgvector: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgvector_index, "MAX_EXACT", 100)
    async with await Collection.open(pgvector, embedder=HashingEmbedder("one")) as library:
        await Ingestion(library).put(ENTRIES)
        await library.catch_up()
        await Ingestion(library).finish()
    before = tables(pgvector.database_url)
    other = HashingEmbedder("two", dimension=48)
    async with await Collection.open(pgvector, embedder=other, check_embedder=False) as library:
        await Ingestion(library).rebuild()
        assert len(await library.search(Query(text="amber", k=3, mode="dense"))) == 3
    assert tables(pgvector.database_url) == before


async def test_doctor_checks_pgvector(pgvector: Settings) -> None:
    found = {each.name: each for each in await examine(pgvector)}
    assert "Chroma" not in found
    assert (found["pgvector"].ok, found["pgvector"].detail) == (True, "ready")
    away = pgvector.model_copy(update={"database_url": "postgresql://nobody@127.0.0.1:1/none"})
    found = {each.name: each for each in await examine(away)}
    assert (found["pgvector"].ok, found["pgvector"].fix) == (False, "CREATE EXTENSION vector")
    with pytest.raises(StoreError, match=r"vectors in Postgres.*SLEUTH_DATABASE_URL"):
        open_vectors(away, HashingEmbedder())


def test_postgres_without_pgvector_is_an_error_with_advice(settings: Settings, postgres_url: str) -> None:
    without = settings.model_copy(update={"vectors": "pgvector", "database_url": postgres_url})
    with pytest.raises(UsageError, match=r"pgvector, 0.7 or newer.*CREATE EXTENSION vector"):
        open_vectors(without, HashingEmbedder())
    with pytest.raises(UsageError, match="set SLEUTH_DATABASE_URL"):
        open_vectors(without.model_copy(update={"database_url": None}), HashingEmbedder())
