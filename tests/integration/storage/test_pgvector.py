from collections.abc import Iterator

import psycopg
import pytest
from entries import entry
from hashing_embedder import HashingEmbedder
from postgres_fixture import database

from sleuth.studio.cli.commands.doctor import examine
from sleuth.tools.collection.collection import Collection
from sleuth.tools.collection.index_set import open_vectors
from sleuth.tools.errors import EmbedderChanged, StoreError, UsageError
from sleuth.tools.search.retriever import Query
from sleuth.tools.search.vectors import index, pgvector_index
from sleuth.tools.search.vectors.index import VectorIndex
from sleuth.tools.settings import Settings

WORDS = ("amber", "bridge", "candle", "dune", "ember", "ferry", "garden", "harbor", "island", "jetty", "kiln", "mill")
ENTRIES = [
    entry(f"d{number:03}", f"{WORDS[number % 12]} {WORDS[number // 12]} {number % 7}") for number in range(12 * 12)
]


@pytest.fixture
def there(settings: Settings, pgvector_url: str) -> Iterator[Settings]:
    """Settings with vectors in an own database."""
    with database(pgvector_url) as url:
        yield settings.model_copy(update={"database_url": url, "vectors": "pgvector"})
        pgvector_index.engine_of(url).dispose()


def tables(url: str | None) -> list[str]:
    query = "SELECT relname FROM pg_class WHERE relname LIKE 'sleuth_vectors_%' ORDER BY 1"
    with psycopg.connect(str(url)) as connection:
        return [str(name) for (name,) in connection.execute(query)]


async def test_collection_keeps_its_vectors_in_postgres(there: Settings) -> None:
    question = Query(text="bridge. A stone bridge.", k=5, mode="dense")
    async with await Collection.open(there, embedder=HashingEmbedder()) as library:
        await library.put([entry("bridge", "A stone bridge."), entry("mill", "A water mill.")])
        best, other = await library.search(question)
        assert (best.passage.document_id, other.passage.document_id) == ("bridge", "mill")
        assert best.score == pytest.approx(1.0, abs=1e-3)
        assert other.score < best.score
        await library.delete(["bridge"])
    assert not (there.home / "chroma").exists()
    embedder = HashingEmbedder()
    async with await Collection.open(there, embedder=embedder) as library:
        hits = await library.search(question)
        assert [hit.passage.document_id for hit in hits] == ["mill"]
        assert embedder.embedded == []


async def test_graph_of_many_vectors_finds_the_nearest(there: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same passages as a comparison of all of them, without a filter and with small and large ones."""
    monkeypatch.setattr(pgvector_index, "MAX_EXACT", 100)
    async with await Collection.open(there, embedder=HashingEmbedder()) as library:
        for batch in (ENTRIES[:120], ENTRIES[120:]):
            await library.put(batch)
            await library.catch_up()
            assert not has_neighbor_graph(there)  # much slower to extend than to build
        await library.finish_change()
        assert has_neighbor_graph(there)
        dense = library._indexes.ready("dense", lambda *_: None)
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


def has_neighbor_graph(there: Settings) -> bool:
    return any(name.endswith("_numbers") for name in tables(there.database_url))


def shared(found: list[tuple[str, float]], exact: list[tuple[str, float]]) -> int:
    """Return how many have a score of the exact search, which other passages may have too."""
    return sum(any(score == pytest.approx(other) for _, other in exact) for _, score in found)


async def test_rebuild_replaces_the_vectors(there: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgvector_index, "MAX_EXACT", 100)
    async with await Collection.open(there, embedder=HashingEmbedder("one")) as library:
        await library.put(ENTRIES)
        await library.catch_up()
        await library.finish_change()
    before = tables(there.database_url)
    other = HashingEmbedder("two", dimension=48)
    async with await Collection.open(there, embedder=other, check_embedder=False) as library:
        await library.rebuild()
        assert len(await library.search(Query(text="amber", k=3, mode="dense"))) == 3
    assert tables(there.database_url) == before


def test_vectors_store_position_embedder_and_dimension(there: Settings) -> None:
    passages = ENTRIES[0].passages
    vectors = open_vectors(there, HashingEmbedder("one", dimension=16))
    assert (vectors.applied(), vectors.dimension(), vectors.count()) == (0, None, 0)
    for _ in range(2):
        vectors.apply(upsert=passages, delete=["never there"])
    vectors.set_reached(14)
    vectors.set_applied(12)
    again = open_vectors(there, HashingEmbedder("two", dimension=16))
    assert (again.applied(), again.reached(), again.dimension()) == (12, 14, 16)
    assert again.ids() == {passage.id for passage in passages}
    with pytest.raises(EmbedderChanged, match=r"one.*two"):
        again.check_embedder()
    again.clear()
    again.check_embedder()
    assert (again.applied(), again.dimension(), again.count()) == (0, None, 0)
    assert vectors.search("amber", 3) == []  # another process's index


async def test_doctor_checks_pgvector(there: Settings) -> None:
    found = {each.name: each for each in await examine(there)}
    assert "Chroma" not in found
    assert (found["pgvector"].ok, found["pgvector"].detail) == (True, "ready")
    away = there.model_copy(update={"database_url": "postgresql://nobody@127.0.0.1:1/none"})
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


async def test_the_former_kind_of_vectors_is_pgvector(there: Settings, caplog: pytest.LogCaptureFixture) -> None:
    question = Query(text="amber", k=3, mode="dense")
    async with await Collection.open(there, embedder=HashingEmbedder()) as library:
        await library.put(ENTRIES[:9])
        hits = await library.search(question)
    former = there.model_copy(update={"vectors": "pgvector-bits"})
    async with await Collection.open(former, embedder=HashingEmbedder()) as library:
        assert await library.search(question) == hits
    assert "use pgvector" in caplog.text
