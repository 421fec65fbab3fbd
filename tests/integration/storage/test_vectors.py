import asyncio
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import EmbedderChanged, StoreError, UsageError
from sleuth.tools.search.retriever import Query
from sleuth.tools.search.vectors.chroma_index import ChromaIndex
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

PASSAGES = [entry(name, text).passages[0] for name, text in (("a", "a stone bridge"), ("b", "a water mill"))]


def opened(place: Path | str, embedder: HashingEmbedder) -> ChromaIndex:
    return ChromaIndex(place, owner="local", collection="default", embedder=embedder)


def test_nearest_vector_comes_first_with_its_cosine(tmp_path: Path) -> None:
    index = opened(tmp_path, HashingEmbedder())
    index.apply(upsert=PASSAGES, delete=[])
    index.apply(upsert=PASSAGES, delete=["never there"])
    (first, score), (second, less) = index.search("a. a stone bridge", 5)
    assert (first, second) == (PASSAGES[0].id, PASSAGES[1].id)
    assert score == pytest.approx(1.0, abs=1e-4) and less < score
    index.close()


def test_vectors_store_position_embedder_and_dimension(tmp_path: Path) -> None:
    index = opened(tmp_path, HashingEmbedder("one", dimension=16))
    index.apply(upsert=PASSAGES, delete=[])
    index.set_applied(12)
    index.close()
    again = opened(tmp_path, HashingEmbedder("two", dimension=16))
    assert (again.applied(), again.dimension(), again.ids()) == (12, 16, {passage.id for passage in PASSAGES})
    with pytest.raises(EmbedderChanged, match=r"one.*two"):
        again.check_embedder()
    again.clear()
    again.check_embedder()
    assert (again.applied(), again.dimension(), again.count()) == (0, None, 0)
    again.close()


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


def test_disk_space_of_deleted_vectors_is_freed(tmp_path: Path) -> None:
    index = opened(tmp_path, HashingEmbedder(dimension=64))
    passages = [entry(f"d{n}", f"text number {n}").passages[0] for n in range(2_100)]
    gone, kept = passages[:2_050], passages[2_050:]
    index.apply(upsert=passages, delete=[])
    index.apply(upsert=[], delete=[passage.id for passage in gone[:1_900]])
    index.set_applied(7)
    (full,) = (path for path in tmp_path.iterdir() if path.is_dir())
    index.tidy()
    assert full.exists(), "too little to copy all"
    index.apply(upsert=[], delete=[passage.id for passage in gone[1_900:]])
    index.set_applied(8)
    index.tidy()
    assert not full.exists()
    index.close()
    again = opened(tmp_path, HashingEmbedder(dimension=64))
    assert (again.applied(), again.dimension(), again.ids()) == (8, 64, {passage.id for passage in kept})
    assert again.search(f"{kept[9].title}. {kept[9].text}", 1)[0] == (kept[9].id, pytest.approx(1.0, abs=1e-4))
    again.check_embedder()
    again.close()


def held(folder: Path) -> int:
    """Files below it that this process has open, deleted ones too."""
    names = list(Path("/proc/self/fd").iterdir())
    return sum(str(folder) in str(name.readlink()) for name in names if name.is_symlink())


def test_vacuum_during_searches_frees_deleted_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sleuth.tools.search.vectors.chroma_index._SPARE", 30)
    index = opened(tmp_path, HashingEmbedder(dimension=64))
    kept, gone = PASSAGES, [entry(f"d{n}", f"text number {n}").passages[0] for n in range(40)]
    index.apply(upsert=kept, delete=[])
    over = threading.Event()

    def search() -> int:
        times = 0
        while not over.is_set():
            assert kept[0].id in {id_ for id_, _ in index.search("a. a stone bridge", 50)}
            times += 1
        return times

    before = held(tmp_path)
    with ThreadPoolExecutor() as pool:
        searching = [pool.submit(search) for _ in range(3)]
        try:
            for at in range(12):
                index.apply(upsert=gone, delete=[])
                index.apply(upsert=[], delete=[passage.id for passage in gone])
                index.set_applied(at)
                index.tidy()
        finally:
            over.set()
        assert all(each.result() for each in searching)
    assert index.count() == 2
    assert held(tmp_path) <= before + 4
    index.close()


async def library(home: Path, owner: str) -> Collection:
    return await Collection.open(Settings(home=home, owner=owner), embedder=HashingEmbedder(dimension=64))


def spawned(function: Callable[..., None], *given: object, **named: object) -> None:
    process = multiprocessing.get_context("spawn").Process(target=function, args=given, kwargs=named)
    process.start()
    process.join(60)
    assert process.exitcode == 0


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


def test_batch_after_an_interruption_replaces_former_vectors(tmp_path: Path) -> None:
    index = opened(tmp_path, HashingEmbedder())
    index.apply(upsert=PASSAGES, delete=[])
    for _ in range(2):
        index.set_reached(4)
    index.apply(upsert=[replace(PASSAGES[0], text="a wooden bridge")], delete=[])
    assert index.search("a. a wooden bridge", 2)[0] == (PASSAGES[0].id, pytest.approx(1.0, abs=1e-4))
    assert index.count() == 2
    index.close()


def changes(home: Path, owners: Sequence[str]) -> None:
    """Rebuild the vectors of owners, or add a document to them."""

    async def work() -> None:
        for owner in owners:
            async with await library(home, owner) as opened:
                if owner == "anna":
                    await opened.rebuild()
                await opened.put([entry("new", "the new text")])
                await opened.catch_up()

    asyncio.run(work())


@pytest.mark.nightly
async def test_search_follows_a_rebuild_and_new_documents_of_another_process(tmp_path: Path) -> None:
    question = Query(text="text", mode="dense")
    async with await library(tmp_path, "anna") as anna, await library(tmp_path, "ben") as ben:
        for each in (anna, ben):
            await each.put([entry("old", "the old text")])
            assert len(await each.search(question)) == 1
        await asyncio.to_thread(spawned, changes, tmp_path, ["anna", "ben"])
        for each in (ben, anna, ben):
            assert len(await each.search(question)) == 2
