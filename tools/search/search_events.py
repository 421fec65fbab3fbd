"""Searches as LangChain callbacks: a tracer shows each search as a run of a retriever."""

from dataclasses import asdict

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.documents import Document
from langchain_core.runnables.config import ensure_config

from sleuth.tools.search.langchain_retriever import LangChainRetriever
from sleuth.tools.search.retriever import Query, Retriever
from sleuth.tools.types import Hit


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
