"""Search and LangChain: retrievers of applications as a `Retriever`, and searches as callbacks.

A tracer shows each search as a run of a retriever.
"""

from collections.abc import Sequence
from dataclasses import asdict

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import ensure_config
from langchain_core.vectorstores import VectorStore

from sleuth.tools.errors import UsageError
from sleuth.tools.search.retriever import Query, Retriever
from sleuth.tools.text.normalization import sanitize
from sleuth.tools.types import Hit, Passage, content_hash

_TITLES = ("title", "source", "file_name", "url")
"""Keys of a document's metadata that may contain its title, the first one first."""


class LangChainRetriever:
    """A retriever that searches a LangChain retriever or vector store.

    All search modes are the same search. A passage is a whole LangChain document; its id is the document's, or that of
    its text. Scores are those of a vector store, or the reciprocal of the rank.
    """

    def __init__(self, searched: BaseRetriever | VectorStore) -> None:
        """Set what is searched."""
        self._searched = searched

    @property
    def is_reporting(self) -> bool:
        """Return whether LangChain itself reports the searches to callbacks."""
        return isinstance(self._searched, BaseRetriever)

    async def search(self, query: Query) -> list[Hit]:
        """Return the best `query.k` documents, best first."""
        query = query.checked()
        if query.where:
            raise UsageError(
                "A LangChain retriever cannot be filtered by sleuth: set its own filter instead of `where`."
            )
        if isinstance(self._searched, VectorStore):
            return _hits(await self._searched.asimilarity_search_with_score(query.text, k=query.k), query.k)
        documents = await self._searched.ainvoke(query.text)
        return _hits([(document, 1 / rank) for rank, document in enumerate(documents, start=1)], query.k)


def _hits(documents: Sequence[tuple[Document, float]], k: int) -> list[Hit]:
    best: dict[str, tuple[Passage, float]] = {}
    for document, score in documents:
        passage = _passage(document)
        best.setdefault(passage.id, (passage, float(score)))
    ranked = enumerate(list(best.values())[:k], start=1)
    return [Hit(passage=passage, score=score, rank=rank) for rank, (passage, score) in ranked]


def _passage(document: Document) -> Passage:
    """Return a document as a passage of itself."""
    text = sanitize(document.page_content)
    id_ = document.id or content_hash(text)[:16]
    named = (document.metadata.get(key) for key in _TITLES)
    title = next((name for name in named if isinstance(name, str) and name), id_)
    source = document.metadata.get("source")
    document_id = source if isinstance(source, str) and source else id_
    return Passage(id=id_, document_id=sanitize(document_id), title=sanitize(title), text=text, start=0, end=len(text))


async def traced_search(retriever: Retriever, query: Query) -> list[Hit]:
    """Search and report it to the callbacks of the current run, if there are any.

    Args:
        retriever: is searched. A LangChain retriever reports its searches itself.
        query: what is searched for.
    """
    callbacks = ensure_config().get("callbacks")
    is_reporting = isinstance(retriever, LangChainRetriever) and retriever.is_reporting
    if is_reporting or not isinstance(callbacks, AsyncCallbackManager) or not callbacks.handlers:
        return await retriever.search(query)
    manager = callbacks.copy()
    manager.add_metadata({"k": query.k, "mode": query.mode}, inherit=False)
    run = await manager.on_retriever_start({"name": "search"}, query.text, name="search")
    try:
        hits = await retriever.search(query)
    except BaseException as error:
        await run.on_retriever_error(error)
        raise
    await run.on_retriever_end([as_document(hit) for hit in hits])
    return hits


def as_document(hit: Hit) -> Document:
    """Return a hit as a LangChain document, with its place and score in the metadata."""
    passage = hit.passage
    about = {
        "id": passage.id,
        "document": passage.document_id,
        "title": passage.title,
        "start": passage.start,
        "end": passage.end,
        "score": hit.score,
        "rank": hit.rank,
        **({"why": asdict(hit.why)} if hit.why else {}),
    }
    return Document(id=passage.id, page_content=passage.text, metadata=about)
