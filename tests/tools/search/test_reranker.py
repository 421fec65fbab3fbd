"""Rerankers: the forms of `/rerank` that servers have, faults that name the remedy, and compressors of LangChain."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document

from sleuth.tools.collection import Collection
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search.reranker import CANDIDATES, CompressorReranker, EndpointReranker, rerank_best, sort_hits
from sleuth.tools.search.retriever import Query
from sleuth.tools.settings import Settings
from sleuth.tools.types import Hit, Passage

TEXTS = ["a lamp", "the light of Pellowrig", "a light"]
HITS = [
    Hit(passage=Passage(id=f"p{at}", document_id="d", title="T", text=text, start=0, end=9), score=1 / at, rank=at)
    for at, text in enumerate(TEXTS, start=1)
]
SCORES = [0.1, 0.9, 0.5]


def jina(body: Any) -> httpx2.Response:
    assert body["documents"] == [f"T\n{text}" for text in TEXTS]
    results = [{"index": at, "relevance_score": score} for at, score in enumerate(SCORES)]
    return httpx2.Response(200, json={"results": results})


def embeddings_inference(body: Any) -> httpx2.Response:
    if "texts" not in body:
        return httpx2.Response(422, text="missing field `texts`")
    return httpx2.Response(200, json=[{"index": at, "score": score} for at, score in enumerate(SCORES)])


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], httpx2.Response]], list[httpx2.Request]]:
    """Let a function answer all requests, instead of a server; return the requests."""

    def answer(reply: Callable[[Any], httpx2.Response]) -> list[httpx2.Request]:
        requests: list[httpx2.Request] = []

        def handle(_transport: object, request: httpx2.Request) -> httpx2.Response:
            requests.append(request)
            return reply(json.loads(request.content))

        monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", handle)
        return requests

    return answer


def endpoint(**more: Any) -> EndpointReranker:
    return EndpointReranker(Settings(reranker="http://127.0.0.1:9/rerank", **more))


@pytest.mark.parametrize("server", [jina, embeddings_inference])
async def test_hits_are_sorted_in_each_form(answering: Any, server: Callable[[Any], httpx2.Response]) -> None:
    requests = answering(server)
    found = await endpoint(reranker_model="bge", reranker_key="secret").rerank("light", HITS)
    assert [(hit.passage.id, hit.score, hit.rank) for hit in found] == [("p2", 0.9, 1), ("p3", 0.5, 2), ("p1", 0.1, 3)]
    assert requests[0].headers["Authorization"] == "Bearer secret"
    assert json.loads(requests[0].content)["model"] == "bge"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (httpx2.Response(503, text="loading"), "answered 503 loading"),
        (httpx2.Response(200, text="<html>"), "cannot be used"),
        (httpx2.Response(200, json={"results": []}), "does not fit"),
        (httpx2.Response(200, json={"results": [{"index": 7, "score": 1}]}), "does not fit"),
        (httpx2.Response(200, json={"data": []}), "cannot be used"),
        (httpx2.Response(200, json=[{"index": 0, "score": None}]), "cannot be used"),
    ],
)
async def test_fault_names_the_remedy(answering: Any, reply: httpx2.Response, told: str) -> None:
    answering(lambda _: reply)
    with pytest.raises(ModelUnavailable, match=told) as raised:
        await endpoint().rerank("light", HITS)
    assert "SLEUTH_RERANKER" in str(raised.value)


async def test_no_hits_need_no_request() -> None:
    assert await endpoint().rerank("light", []) == []


class Shortest(BaseDocumentCompressor):
    """Keeps the two shortest documents."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        return sorted(documents, key=lambda each: len(each.page_content))[:2]


async def test_compressor_of_langchain_sorts_and_drops() -> None:
    found = await CompressorReranker(Shortest()).rerank("light", HITS)
    assert [(hit.passage.id, hit.rank) for hit in found] == [("p1", 1), ("p3", 2)]


class Reversing:
    """Reverses the hits."""

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        return sort_hits(hits, dict(enumerate(range(len(hits)))))


async def test_only_the_best_hits_of_a_long_list_are_sorted() -> None:
    passage = HITS[0].passage
    hits = [Hit(passage=replace(passage, id=f"p{at}"), score=0.0, rank=at) for at in range(1, CANDIDATES + 3)]
    found = await rerank_best(Reversing(), "light", hits)
    assert [hit.rank for hit in found] == [hit.rank for hit in hits]
    assert [hit.passage.id for hit in found[:2]] == [f"p{CANDIDATES}", f"p{CANDIDATES - 1}"]
    assert [hit.passage.id for hit in found[CANDIDATES:]] == [f"p{CANDIDATES + 1}", f"p{CANDIDATES + 2}"]


async def test_search_of_a_collection_is_sorted(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", embedder="none")
    documents = tmp_path / "documents.jsonl"
    lines = [json.dumps({"id": f"d{at}", "title": "T", "text": f"{'The light. ' * at}"}) for at in range(1, 6)]
    await asyncio.to_thread(documents.write_text, "\n".join(lines) + "\n")
    await ingest([documents], settings=settings)
    async with await Collection.open(settings) as collection:
        first = await collection.search(Query(text="light", k=5, mode="keyword"))
        collection.reranker = Reversing()
        found = await collection.search(Query(text="light", k=2, mode="keyword"))
    assert [hit.passage.id for hit in found] == [hit.passage.id for hit in reversed(first)][:2]
