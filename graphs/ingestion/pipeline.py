"""Ingestion of documents: list the files, then read a batch while the previous one is indexed.

After a kill the same call resumes: the catalogue is the source of truth, stored documents are skipped as unchanged, and
the indexes follow the journal of the catalogue.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sleuth.tools.collection import Collection
from sleuth.tools.collection.batch_reader import Batch
from sleuth.tools.collection.index_set import OnIndexed
from sleuth.tools.documents.formats.content import clean_meta
from sleuth.tools.errors import UsageError
from sleuth.tools.search.index import IndexName
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Difference, Stored
from sleuth.tools.storage.filters import RESERVED
from sleuth.tools.storage.locks import LockMode, hold

NO_META: Mapping[str, str] = MappingProxyType({})
MAX_WARNINGS = 20
"""Failures in a report; each one is also shown when it happens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestProgress:
    """Counts since the start of this call.

    `failure` is the reason why a file has just failed; `differences` are the files that were just stored, by path.
    """

    files: int = 0
    total: int = 0
    stored: int = 0
    embedded: int = 0
    failure: str | None = None
    differences: Mapping[str, Difference] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestReport:
    """Result of an ingest.

    `warnings` contains the first failures, `passed_over` all files that were not tried, each with the reason.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: int = 0
    passages: int = 0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


OnProgress = Callable[[IngestProgress], None]


class ProgressReporter:
    """Adds up the counts of an ingest and passes the sums to a callback, in the event loop."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._counts = Counter[str]()
        self._on_progress = on_progress
        self._loop = asyncio.get_running_loop()

    def add(
        self, *, failure: str | None = None, differences: Mapping[str, Difference] | None = None, **counts: int
    ) -> None:
        """Add counts."""
        self._counts.update(counts)
        if self._on_progress is not None:
            self._on_progress(IngestProgress(**self._counts, failure=failure, differences=differences or {}))

    def count_embedded(self, slowest: IndexName) -> OnIndexed:
        """Return a callback for indexing; a passage counts when it is in the slowest index, which is updated last."""

        def on_indexed(index: IndexName, passages: int) -> None:
            if index == slowest:
                self._loop.call_soon_threadsafe(lambda: self.add(embedded=passages))

        return on_indexed


async def ingest(
    paths: Sequence[Path],
    *,
    settings: Settings,
    on_progress: OnProgress | None = None,
    rebuild: bool = False,
    embedder: Embedder | None = None,
    meta: Mapping[str, str] = NO_META,
) -> IngestReport:
    """Ingest files, folders and corpora into the collection. The same call resumes an interrupted ingest.

    `meta` are own fields of all these documents, which a later ingest keeps; an empty one is removed. `rebuild` first
    rebuilds the indexes with the present embedder; it needs no paths. Searches wait for a rebuild.

    Raises:
        UsageError: a path does not exist.
        StoreBusy: another process uses the store.
        EmbedderChanged: the collection was built with another embedder.
    """
    began = time.monotonic()
    mode: LockMode = "alone" if rebuild else "exclusive"
    command = "sleuth ingest --rebuild" if rebuild else "sleuth ingest"
    async with (
        hold(settings.home, mode, command=command, wait=settings.wait),
        await Collection.open(settings, embedder=embedder, check_embedder=not rebuild) as collection,
    ):
        if rebuild:
            await collection.rebuild(on_indexed=ProgressReporter(on_progress).count_embedded(collection.slowest))
        if paths:
            report = await ingest_into(
                paths, settings=settings, collection=collection, on_progress=on_progress, meta=meta
            )
        else:
            report = IngestReport(warnings=collection.notes)
    return replace(report, seconds=time.monotonic() - began)


async def ingest_into(
    paths: Sequence[Path],
    *,
    settings: Settings,
    collection: Collection,
    on_progress: OnProgress | None = None,
    stopped: Callable[[], bool] = lambda: False,
    only: Container[Path] | None = None,
    meta: Mapping[str, str] = NO_META,
) -> IngestReport:
    """Ingest files, or those of them that are in `only`, into an open collection.

    The caller holds the exclusive lock on SLEUTH_HOME. Stored documents are skipped. When `stopped` returns True, the
    ingest ends after the documents that were read, which are complete and in all indexes.
    """
    began = time.monotonic()
    progress = ProgressReporter(on_progress)
    roots = [await asyncio.to_thread(path.absolute) for path in paths]
    files, passed_over = await collection.list_files(roots, only)
    progress.add(total=len(files))
    report = await _read_batches(
        collection.ingest_files(files, stopped=stopped, meta=_checked(meta)), collection, progress
    )
    await collection.stop_workers()
    await collection.finish_change()
    nothing = [] if files else ["There is nothing to read there."]
    warnings = [*nothing, *report.warnings, *collection.notes]
    seconds = time.monotonic() - began
    return replace(report, warnings=warnings, passed_over=passed_over, seconds=seconds)


def _checked(meta: Mapping[str, str]) -> dict[str, str]:
    """Return own fields in their stored form; raise UsageError for a name that cannot be one."""
    for name in meta:
        if not clean_meta({name: "a"}):
            raise UsageError(
                f"{name!r} cannot be an own field. Begin its name with a letter, use letters, digits, - and _, but "
                f"none of these: {', '.join(sorted(RESERVED))}."
            )
    cleaned = clean_meta(meta)
    return {key: cleaned.get(key, "") for key in ("_".join(name.lower().split()) for name in meta)}


async def _read_batches(
    batches: AsyncIterator[tuple[Batch, Stored]], collection: Collection, progress: ProgressReporter
) -> IngestReport:
    """Read files into the catalogue; update the indexes, the slow part, in parallel with the next batch."""
    counts, warnings = Counter[str](), list[str]()
    on_indexed = progress.count_embedded(collection.slowest)
    indexing: asyncio.Task[None] | None = None
    try:
        async for batch, stored in batches:
            for failure in batch.failures:
                progress.add(failure=failure)
            progress.add(files=batch.files, stored=stored.passages, differences=batch.files_of(stored))
            counts.update(added=stored.added, updated=stored.updated, unchanged=stored.unchanged)
            counts.update(failed=len(batch.failures), passages=stored.passages)
            warnings += [*batch.failures, *batch.notes]
            if indexing is not None:
                await indexing
            indexing = asyncio.create_task(collection.catch_up(on_indexed=on_indexed))
        await (indexing or collection.catch_up(on_indexed=on_indexed))
    finally:
        if indexing is not None:
            indexing.cancel()
            await asyncio.gather(indexing, return_exceptions=True)
    fields: dict[str, Any] = {**counts, "warnings": warnings[:MAX_WARNINGS]}
    return IngestReport(**fields)
