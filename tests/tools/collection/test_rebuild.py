"""A rebuild builds new indexes next to the present ones, which are searched meanwhile, and then uses them."""

import asyncio
import threading
from dataclasses import replace

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import EmbedderChanged, StoreError
from sleuth.tools.search.retriever import MODES, Mode, Query
from sleuth.tools.search.vectors.embedder import Vectors
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold

PLACES = ("Kestrow", "Immer", "Quarve", "Fennimer", "Tarn")
INDEXED: tuple[Mode, ...] = tuple(mode for mode in MODES if mode != "knowledge-graph")


class Paused(HashingEmbedder):
    """Waits in each embedding of passages until it is released."""

    def __init__(self, name: str, dimension: int) -> None:
        super().__init__(name, dimension=dimension)
        self.reached, self.released = threading.Event(), threading.Event()

    def embed_passages(self, texts: list[str]) -> Vectors:
        self.reached.set()
        assert self.released.wait(60)
        return super().embed_passages(texts)


async def filled(settings: Settings) -> None:
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        await library.put([entry(place, f"The light stands at {place}.") for place in PLACES])
        await library.catch_up()


async def searched(settings: Settings, embedder: HashingEmbedder) -> dict[Mode, list[str]]:
    """Search as a command does, under the shared lock, which is not waited for."""
    async with hold(settings.home, "shared", command="sleuth search"):
        return await results(settings, embedder)


async def results(settings: Settings, embedder: HashingEmbedder) -> dict[Mode, list[str]]:
    async with await Collection.open(settings, embedder=embedder) as library:
        question = Query(text="Which light stands at Tarn?", k=3)
        found = {mode: await library.search(replace(question, mode=mode)) for mode in INDEXED}
        return {mode: [hit.passage.document_id for hit in hits] for mode, hits in found.items()}


@pytest.mark.parametrize("name", ["hashing", "wider"])
async def test_search_works_during_a_rebuild(settings: Settings, name: str) -> None:
    await filled(settings)
    before = await searched(settings, HashingEmbedder())
    new = Paused(name, dimension=512 if name == "hashing" else 128)
    rebuilding = asyncio.create_task(ingest([], settings=settings, rebuild=True, embedder=new))
    try:
        assert await asyncio.to_thread(new.reached.wait, 60)
        assert await searched(settings, HashingEmbedder()) == before
    finally:
        new.released.set()
    await rebuilding
    after = await searched(settings, new)
    assert {mode: found[0] for mode, found in after.items()} == dict.fromkeys(INDEXED, "Tarn")
    assert after == before or name == "wider"
    if name == "wider":
        with pytest.raises(EmbedderChanged):
            await searched(settings, HashingEmbedder())


async def test_open_library_uses_the_rebuilt_indexes_alone(settings: Settings) -> None:
    await filled(settings)
    query, files = Query(text="Which light stands at Tarn?", k=3, mode="graph"), index_files(settings)
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        before = await library.search(query)
        await ingest([], settings=settings, rebuild=True, embedder=HashingEmbedder())
        assert await library.search(query) == before
    assert index_files(settings) == files
    assert len([path for path in (settings.home / "chroma").iterdir() if path.is_dir()]) <= 1


def index_files(settings: Settings) -> set[str]:
    return {path.name for folder in ("keywords", "mentions") for path in (settings.home / folder).iterdir()}


async def test_interrupted_rebuild_is_resumed(settings: Settings) -> None:
    await filled(settings)
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        await library.put([entry(f"{at}", f"A passage about {at}.") for at in range(600)])
        await library.catch_up()
    before = await searched(settings, HashingEmbedder())
    first = HashingEmbedder()
    library = await Collection.open(settings, embedder=first)
    closing = threading.Thread(target=lambda: asyncio.run(library.close()))

    def stop(index: str, _passages: int) -> None:
        if index == "dense" and not closing.ident:
            closing.start()
            library._indexes._is_closing.wait(10)
            library._indexes._draft._is_closing.wait(10)  # type: ignore[union-attr]

    with pytest.raises(StoreError, match="resumes"):
        await library.build_draft(on_indexed=stop)
    await asyncio.to_thread(closing.join)
    assert await searched(settings, HashingEmbedder()) == before
    second = HashingEmbedder()
    await ingest([], settings=settings, rebuild=True, embedder=second)
    assert 0 < len(first.embedded) < 605
    assert len(second.embedded) <= 605 - len(first.embedded) + 256
    assert await searched(settings, HashingEmbedder()) == before


async def test_abandoned_rebuild_with_another_embedder_is_not_used(settings: Settings) -> None:
    await filled(settings)
    async with await Collection.open(settings, embedder=HashingEmbedder("other"), check_embedder=False) as library:
        await library.build_draft()
    third = HashingEmbedder("third")
    await ingest([], settings=settings, rebuild=True, embedder=third)
    assert len(third.embedded) == len(PLACES)
    assert (await searched(settings, third))["dense"][0] == "Tarn"
