import asyncio
import multiprocessing
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import EmbedderChanged, StoreError, UsageError
from sleuth.tools.search.retriever import Query
from sleuth.tools.search.vectors.chroma_index import ChromaIndex
from sleuth.tools.settings import Settings

PASSAGES = [entry(name, text).passages[0] for name, text in (("a", "a stone bridge"), ("b", "a water mill"))]


def opened(place: Path | str, embedder: HashingEmbedder) -> ChromaIndex:
    return ChromaIndex(place, owner="local", collection="default", embedder=embedder)


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
