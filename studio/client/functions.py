"""The functions of the package `sleuth`: each opens what it needs, makes one call, and closes it.

Every function takes `settings`; those of the environment are used by default.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from langchain_core.callbacks.base import Callbacks
from langchain_core.embeddings import Embeddings
from langgraph.graph import StateGraph

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import DEFAULT_METHOD, Budget, Context, RunOptions
from sleuth.graphs.core.events import Event
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.history import CheckpointView, fork_run, list_checkpoints
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.opening import open_collection
from sleuth.studio.client.sleuth import open_sleuth
from sleuth.tools.collection import Collection
from sleuth.tools.ingestion.ingestion import NO_META, IngestProgress, IngestReport, open_ingestion
from sleuth.tools.ingestion.ingestion import ingest as ingest_paths
from sleuth.tools.search import Mode, Query, find_mode
from sleuth.tools.search.vectors.embedder import LangChainEmbedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Listed
from sleuth.tools.types import Hit

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool


async def ask(question: str, *, settings: Settings | None = None, **options: Unpack[RunOptions]) -> Answer:
    """Run a method and return the answer.

    Args:
        question: the question.
        settings: those of the environment by default.
        options: see `RunOptions`.

    Raises:
        SleuthError: see `sleuth.tools.errors`; a run that was started can be resumed.
    """
    async with open_sleuth(settings) as sleuth:
        return await sleuth.ask(question, **options)


async def stream(
    question: str, *, deltas: bool = False, settings: Settings | None = None, **options: Unpack[RunOptions]
) -> AsyncGenerator[Event]:
    """Run a method; yield its steps as they happen, then the `Answer`. Takes the arguments of `ask`.

    Args:
        question: the question.
        deltas: also yield text while the model writes it, as `Delta`, and a `Reset` if a call is repeated.
        settings: those of the environment by default.
        options: see `RunOptions`.
    """
    async with open_sleuth(settings) as sleuth, aclosing(sleuth.stream(question, deltas=deltas, **options)) as events:
        async for event in events:
            yield event


async def resume(
    thread: str, *, budget: Budget | None = None, callbacks: Callbacks = None, settings: Settings | None = None
) -> Answer:
    """Resume a run from its last checkpoint; return the stored answer if it is finished. See `Sleuth.resume`."""
    async with open_sleuth(settings) as sleuth:
        return await sleuth.resume(thread, budget=budget, callbacks=callbacks)


async def history(thread: str, *, settings: Settings | None = None) -> list[CheckpointView]:
    """Return all checkpoints of a run, the newest first; raise UnknownName for an unknown run."""
    async with _open_runs(settings) as runs:
        return await list_checkpoints(runs, thread)


async def fork(
    thread: str,
    *,
    at: str,
    changes: dict[str, Any] | None = None,
    into: str | None = None,
    name: str | None = None,
    settings: Settings | None = None,
) -> dict[str, str]:
    """Branch a run from one of its checkpoints without running the branch; takes the arguments of `Sleuth.fork`."""
    async with _open_runs(settings) as runs:
        return await fork_run(runs, thread, at=at, changes=changes, into=into, name=name)


async def ingest(
    *paths: str | PathLike[str],
    embedder: Embeddings | None = None,
    on_progress: Callable[[IngestProgress], None] | None = None,
    meta: Mapping[str, str] = NO_META,
    settings: Settings | None = None,
) -> IngestReport:
    """Ingest files, folders and corpora; unchanged files are skipped. The same call resumes an interrupted ingest.

    Args:
        paths: files, folders, .jsonl or .jsonl.gz corpora.
        embedder: LangChain embeddings instead of SLEUTH_EMBEDDER; `open` needs the same.
        on_progress: is called with the counts so far, and with each file that cannot be read.
        meta: own fields of these documents, for `where`; a later ingest keeps them, and an empty text removes one.
        settings: those of the environment by default.

    Raises:
        UsageError: a path does not exist, or a field has a name that cannot be one.
        StoreBusy: another process uses the store.
        EmbedderChanged: the collection was built with another embedder.
    """
    return await ingest_paths(
        [Path(path) for path in paths],
        settings=await _or_default(settings),
        on_progress=on_progress,
        embedder=LangChainEmbedder(embedder) if embedder else None,
        meta=meta,
    )


async def search(
    query: str, *, k: int = 5, mode: Mode = "hybrid", where: str = "", settings: Settings | None = None
) -> list[Hit]:
    """Return the best `k` passages, best first; no model is called.

    Args:
        query: the question.
        k: the number of passages.
        mode: a search mode; the hits of graph modes contain the path to the passage.
        where: a filter of the documents that are searched, such as "tag=contract date>=2025-01-01".
        settings: those of the environment by default.

    Raises:
        UsageError: the question or the collection is empty, or the filter cannot be parsed.
    """
    async with open_collection(await _or_default(settings), "search", command="sleuth") as collection:
        return await collection.search(Query(text=query, k=k, mode=find_mode(mode), where=where))


async def documents(
    *, limit: int = 100, after: str = "", find: str = "", where: str = "", settings: Settings | None = None
) -> list[Listed]:
    """Return documents with `find` in their title that match a filter, ordered by id, after the id `after`."""
    async with await Collection.open(await _or_default(settings), check_embedder=False) as collection:
        return await collection.documents(limit=limit, after=after, find=find, where=where)


async def delete(*ids: str, settings: Settings | None = None) -> int:
    """Delete documents from the catalogue and all indexes; return their number.

    Raises:
        UnknownName: a document does not exist; none is deleted.
        StoreBusy: another process uses the store.
    """
    async with open_ingestion(await _or_default(settings), command="sleuth") as ingestion:
        return await ingestion.delete(ids)


def as_tool(method: str = DEFAULT_METHOD, **options: Any) -> "BaseTool":  # noqa: ANN401 - those of ask
    """Return a method as a LangChain tool of another agent; each call opens the home, unlike `Sleuth.as_tool`."""
    from sleuth.studio.client.langchain_parts import tool_of

    return tool_of(partial(ask, method=method, **options), method)


def as_retriever(
    *, k: int = 5, mode: Mode = "hybrid", where: str = "", settings: Settings | None = None
) -> "BaseRetriever":
    """Return the search as a LangChain retriever; each search opens the home, unlike `Sleuth.as_retriever`."""
    from sleuth.studio.client.langchain_parts import SleuthRetriever

    return SleuthRetriever(search=partial(search, settings=settings), k=k, mode=mode, where=where)


def graph(name: str) -> StateGraph[Any, Context, Any, Any]:
    """Return the uncompiled state machine of a method or of `chat`, for other applications.

    Run it with a `sleuth.Context`; auto and chat, which run other methods, need `subruns` in it.
    """
    return runnable(name).graph()


async def _or_default(settings: Settings | None) -> Settings:
    """Return the settings, by default those of the environment."""
    return await asyncio.to_thread(Settings) if settings is None else settings


@asynccontextmanager
async def _open_runs(settings: Settings | None) -> AsyncIterator[RunService]:
    async with open_store(await _or_default(settings)) as store:
        yield RunService(store)
