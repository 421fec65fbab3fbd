"""The functions of the package `sleuth`: each opens what it needs, makes one call, and closes it.

Every function takes `settings`; those of the environment are used by default.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from os import PathLike
from pathlib import Path
from typing import Unpack

from langchain_core.embeddings import Embeddings

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import RunOptions
from sleuth.graphs.core.events import Event
from sleuth.studio.client.sleuth import open_sleuth
from sleuth.tools.collection import Collection
from sleuth.tools.home import open_home
from sleuth.tools.ingestion.ingestion import NO_META, IngestProgress, IngestReport
from sleuth.tools.ingestion.ingestion import ingest as ingest_paths
from sleuth.tools.search import Mode, Query, find_mode
from sleuth.tools.search.vectors.embedder import LangChainEmbedder
from sleuth.tools.settings import Settings
from sleuth.tools.types import Hit


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
    if settings is None:
        settings = await asyncio.to_thread(Settings)
    return await ingest_paths(
        [Path(path) for path in paths],
        settings=settings,
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
    if settings is None:
        settings = await asyncio.to_thread(Settings)
    async with open_home(settings, "search") as home, await Collection.open(settings, home=home) as collection:
        return await collection.search(Query(text=query, k=k, mode=find_mode(mode), where=where))
