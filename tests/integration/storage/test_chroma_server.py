import os

import pytest
from chroma_fixture import ChromaServer
from chromadb.telemetry import opentelemetry
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import StoreError
from sleuth.tools.search.retriever import Query
from sleuth.tools.search.vectors import chroma_index
from sleuth.tools.settings import Settings


async def test_collection_keeps_its_vectors_on_a_server(settings: Settings, chroma_url: str) -> None:
    there = settings.model_copy(update={"chroma_url": chroma_url})
    async with await Collection.open(there, embedder=HashingEmbedder()) as library:
        await library.put([entry("bridge", "A stone bridge."), entry("mill", "A water mill.")])
        hits = await library.search(Query(text="bridge. A stone bridge.", k=1, mode="dense"))
        assert [hit.passage.document_id for hit in hits] == ["bridge"]
        await library.delete(["bridge"])
    assert not (settings.home / "chroma").exists()
    embedder = HashingEmbedder()
    async with await Collection.open(there, embedder=embedder) as library:
        hits = await library.search(Query(text="bridge. A stone bridge.", k=5, mode="dense"))
        assert [hit.passage.document_id for hit in hits] == ["mill"]
        assert embedder.embedded == []


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
    there = settings.model_copy(update={"chroma_url": own_chroma.url})
    question = Query(text="bridge. A stone bridge.", k=2, mode="dense")
    async with await Collection.open(there, embedder=HashingEmbedder()) as library:
        await library.put([entry("bridge", "A stone bridge.")])
        assert len(await library.search(question)) == 1
        own_chroma.stop()
        with pytest.raises(StoreError, match="SLEUTH_CHROMA_URL"):
            await library.search(question)
        await library.put([entry("mill", "A water mill.")])
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
        await library.delete(["mill"])
        assert [hit.passage.document_id for hit in await library.search(question)] == ["bridge"]


async def test_variables_of_chroma_start_no_telemetry(
    settings: Settings, own_chroma: ChromaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMA_OTEL_COLLECTION_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("CHROMA_OTEL_GRANULARITY", "all")
    there = settings.model_copy(update={"chroma_url": own_chroma.url})
    async with await Collection.open(there, embedder=HashingEmbedder()) as library:
        await library.put([entry("bridge", "A stone bridge.")])
    assert opentelemetry.tracer is None
