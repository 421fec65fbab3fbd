"""Rerankers: the forms of `/rerank` that servers have, faults that name the remedy, and compressors of LangChain."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document

from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.search.reranker import CompressorReranker, EndpointReranker
from sleuth.tools.settings import Settings
from sleuth.tools.types import Hit, Passage

TEXTS = ["a lamp", "the light of Pellowrig", "a light"]
HITS = [
    Hit(passage=Passage(id=f"p{at}", document_id="d", title="T", text=text, start=0, end=9), score=1 / at, rank=at)
    for at, text in enumerate(TEXTS, start=1)
]
SCORES = [0.1, 0.9, 0.5]


def jina(body: Any) -> httpx.Response:
    assert body["documents"] == [f"T\n{text}" for text in TEXTS]
    results = [{"index": at, "relevance_score": score} for at, score in enumerate(SCORES)]
    return httpx.Response(200, json={"results": results})


def embeddings_inference(body: Any) -> httpx.Response:
    if "texts" not in body:
        return httpx.Response(422, text="missing field `texts`")
    return httpx.Response(200, json=[{"index": at, "score": score} for at, score in enumerate(SCORES)])


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], httpx.Response]], list[httpx.Request]]:
    """Let a function answer all requests, instead of a server; return the requests."""

    def answer(reply: Callable[[Any], httpx.Response]) -> list[httpx.Request]:
        requests: list[httpx.Request] = []

        async def handle(_transport: object, request: httpx.Request) -> httpx.Response:
            requests.append(request)
            return reply(json.loads(request.content))

        monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", handle)
        return requests

    return answer


def endpoint(**more: Any) -> EndpointReranker:
    return EndpointReranker(Settings(reranker="http://127.0.0.1:9/rerank", **more))


@pytest.mark.parametrize("server", [jina, embeddings_inference])
async def test_hits_are_sorted_in_each_form(answering: Any, server: Callable[[Any], httpx.Response]) -> None:
    requests = answering(server)
    found = await endpoint(reranker_model="bge", reranker_key="secret").rerank("light", HITS)
    assert [(hit.passage.id, hit.score, hit.rank) for hit in found] == [("p2", 0.9, 1), ("p3", 0.5, 2), ("p1", 0.1, 3)]
    assert requests[0].headers["Authorization"] == "Bearer secret"
    assert json.loads(requests[0].content)["model"] == "bge"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (httpx.Response(503, text="loading"), "answered 503 loading"),
        (httpx.Response(200, text="<html>"), "cannot be used"),
        (httpx.Response(200, json={"results": []}), "does not fit"),
        (httpx.Response(200, json={"results": [{"index": 7, "score": 1}]}), "does not fit"),
        (httpx.Response(200, json={"data": []}), "cannot be used"),
        (httpx.Response(200, json=[{"index": 0, "score": None}]), "cannot be used"),
    ],
)
async def test_fault_names_the_remedy(answering: Any, reply: httpx.Response, told: str) -> None:
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
