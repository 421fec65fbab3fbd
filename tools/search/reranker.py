"""Rerankers that users bring: a `/rerank` endpoint, or a document compressor of LangChain.

The best CANDIDATES of a search are sorted by their scores; the explanation of graph search stays with its passage.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings, client_options
from sleuth.tools.types import Hit

if TYPE_CHECKING:
    import httpx2
    from langchain_core.documents import BaseDocumentCompressor

CANDIDATES = 50
"""Passages that are sorted; in a longer list, the others follow in their order."""

_UNKNOWN_FIELDS = (400, 422)


class Reranker(Protocol):
    """Sorts the hits of a search."""

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits, best first, with new scores and ranks.

        Raises:
            ModelUnavailable: the reranker cannot be used.
        """
        ...


class EndpointReranker:
    """A `/rerank` endpoint in the form of Jina, Cohere and vLLM, or in that of Text Embeddings Inference.

    Usage:

        reranker = EndpointReranker(Settings(reranker="http://localhost:8001/rerank"))
        hits = await reranker.rerank("who built the light", hits)
    """

    def __init__(self, settings: Settings) -> None:
        """Connect at the first search; the settings name the endpoint, its model and its key."""
        assert settings.reranker
        self._url, self._settings = settings.reranker, settings

    @cached_property
    def _client(self) -> "httpx2.Client":
        from sleuth.tools.http import bounded_client

        options = client_options(self._url, self._settings.proxy) | {"timeout": self._settings.timeout}
        return bounded_client(options, key=self._settings.reranker_key)

    async def _post(self, body: dict[str, Any]) -> "httpx2.Response":
        return await asyncio.to_thread(lambda: self._client.post(self._url, json=body))

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits, sorted by the endpoint."""
        if not hits:
            return []
        import httpx2

        texts = [f"{hit.passage.title}\n{hit.passage.text}" for hit in hits]
        model = {"model": self._settings.reranker_model} if self._settings.reranker_model else {}
        try:
            response = await self._post({**model, "query": query, "documents": texts})
            if response.status_code in _UNKNOWN_FIELDS:  # Text Embeddings Inference names them `texts`
                second = await self._post({"query": query, "texts": texts, "truncate": True})
                response = second if second.is_success else response
            response.raise_for_status()
            scores = _scores(response.json(), len(hits))
        except httpx2.HTTPStatusError as error:
            reason = f"{error.response.status_code} {error.response.text[:200]}".strip()
            raise ModelUnavailable(f"The reranker at {self._url} answered {reason}. Check SLEUTH_RERANKER.") from error
        except (httpx2.HTTPError, ValueError, LookupError, TypeError) as error:
            raise ModelUnavailable(
                f"The reranker at {self._url} cannot be used ({type(error).__name__}: {error}). Start it, or unset "
                "SLEUTH_RERANKER to search without it."
            ) from error
        return sort_hits(hits, scores)


def _scores(reply: Any, number: int) -> dict[int, float]:  # noqa: ANN401 - JSON
    """Return the scores of a reply by the place of their passages."""
    results = reply["results"] if isinstance(reply, dict) else reply
    scores = {int(each["index"]): float(each.get("relevance_score", each.get("score"))) for each in results}
    if not scores or not scores.keys() <= set(range(number)):
        raise ValueError("its reply does not fit the passages")
    return scores


class CompressorReranker:
    """A document compressor of LangChain; what it leaves out is not found."""

    def __init__(self, compressor: "BaseDocumentCompressor") -> None:
        self._compressor = compressor

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits that the compressor keeps, in its order."""
        from sleuth.tools.search.langchain import as_document

        by_id = {hit.passage.id: at for at, hit in enumerate(hits)}
        documents = await self._compressor.acompress_documents([as_document(hit) for hit in hits], query)
        reranked = [by_id[str(document.metadata["id"])] for document in documents]
        scores = [float(each.metadata.get("relevance_score", 1 / rank)) for rank, each in enumerate(documents, start=1)]
        return sort_hits(hits, dict(zip(reranked, scores, strict=True)))


async def rerank_best(reranker: Reranker, query: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with the first CANDIDATES sorted by a reranker."""
    best = await reranker.rerank(query, hits[:CANDIDATES])
    return [replace(hit, rank=rank) for rank, hit in enumerate([*best, *hits[CANDIDATES:]], start=1)]


def sort_hits(hits: Sequence[Hit], scores: dict[int, float]) -> list[Hit]:
    """Return the hits at these places by their scores; equal ones keep their order."""
    order = sorted(scores, key=lambda at: (-scores[at], at))
    return [replace(hits[at], score=scores[at], rank=rank) for rank, at in enumerate(order, start=1)]
