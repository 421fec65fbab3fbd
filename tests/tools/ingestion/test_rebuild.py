"""A rebuild empties the indexes and builds them again; searches are refused meanwhile."""

import asyncio
import threading
from dataclasses import replace

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import EmbedderChanged, StoreBusy, StoreError
from sleuth.tools.ingestion.ingestion import Ingestion, ingest
from sleuth.tools.search.retriever import MODES, Mode, Query
from sleuth.tools.search.vectors.embedder import Vectors
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

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
        await Ingestion(library).put([entry(place, f"The light stands at {place}.") for place in PLACES])
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
async def test_search_is_refused_during_a_rebuild_and_works_afterwards(settings: Settings, name: str) -> None:
    await filled(settings)
    before = await searched(settings, HashingEmbedder())
    new = Paused(name, dimension=512 if name == "hashing" else 128)
    rebuilding = asyncio.create_task(ingest([], settings=settings, rebuild=True, embedder=new))
    try:
        assert await asyncio.to_thread(new.reached.wait, 60)
        with pytest.raises(StoreBusy, match=r"sleuth ingest --rebuild"):
            await searched(settings, HashingEmbedder())
    finally:
        new.released.set()
    await rebuilding
    after = await searched(settings, new)
    assert {mode: found[0] for mode, found in after.items()} == dict.fromkeys(INDEXED, "Tarn")
    assert after == before or name == "wider"
    if name == "wider":
        with pytest.raises(EmbedderChanged):
            await searched(settings, HashingEmbedder())


async def test_open_library_uses_the_rebuilt_indexes(settings: Settings) -> None:
    await filled(settings)
    query = Query(text="Which light stands at Tarn?", k=3)
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        before = [await library.search(replace(query, mode=mode)) for mode in INDEXED]
        await ingest([], settings=settings, rebuild=True, embedder=HashingEmbedder())
        assert [await library.search(replace(query, mode=mode)) for mode in INDEXED] == before


async def test_interrupted_rebuild_is_resumed_by_the_next_use(settings: Settings) -> None:
    await filled(settings)
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        await Ingestion(library).put([entry(f"{at}", f"A passage about {at}.") for at in range(600)])
    first = HashingEmbedder("wider", dimension=128)
    library = await Collection.open(settings, embedder=first, check_embedder=False)
    closing = threading.Thread(target=lambda: asyncio.run(library.close()))

    def stop(index: str, _passages: int) -> None:
        if index == "dense" and not closing.ident:
            closing.start()
            library.indexes._is_closing.wait(10)

    with pytest.raises(StoreError, match="resumes"):
        await Ingestion(library).rebuild(on_indexed=stop)
    await asyncio.to_thread(closing.join)
    second = HashingEmbedder("wider", dimension=128)
    assert (await searched(settings, second))["dense"][0] == "Tarn"
    assert 0 < len(first.embedded) < 605
    assert len(second.embedded) <= 605 - len(first.embedded) + 256
