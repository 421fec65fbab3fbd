"""Ingestion of documents: list the files, then read a batch while the previous one is indexed.

After a kill the same call resumes: the catalogue is the source of truth, stored documents are skipped as unchanged, and
the indexes follow the journal of the catalogue.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from sleuth.tools.collection import Collection
from sleuth.tools.collection.index_set import OnIndexed, ignore
from sleuth.tools.documents.file_list import Item, absolute, list_files
from sleuth.tools.documents.formats.content import clean_meta
from sleuth.tools.documents.loading import read_original
from sleuth.tools.documents.parallel_reading import LocalWorkers, Workers, default_workers
from sleuth.tools.documents.resource_limits import Bounds
from sleuth.tools.errors import DocumentError, MissingPart, StoreError, UsageError, needs_part
from sleuth.tools.home import open_home
from sleuth.tools.ingestion.batch_reader import Batch, BatchReader, Failure
from sleuth.tools.search.index import IndexName
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.search.vectors.embedder import LocalEmbedder, make_embedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Difference, Entry, Stored
from sleuth.tools.storage.database import in_thread
from sleuth.tools.storage.filters import RESERVED
from sleuth.tools.storage.locks import LockMode

_log = logging.getLogger(__name__)

NO_META: Mapping[str, str] = MappingProxyType({})
MAX_WARNINGS = 20
"""Failures in a report; each one is also reported when it happens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestProgress:
    """Counts since the start of this call.

    `failure` is the file that has just failed; `differences` are the files that were just stored, by path.
    """

    files: int = 0
    total: int = 0
    stored: int = 0
    embedded: int = 0
    failure: Failure | None = None
    differences: Mapping[str, Difference] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestReport:
    """Result of an ingest or of a synchronization, which also removes documents.

    `warnings` contains the first failures, `passed_over` all files that were not tried, each with the reason.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: int = 0
    passages: int = 0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


OnProgress = Callable[[IngestProgress], None]


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
    rebuilds the indexes with the present embedder; it needs no paths. Searches wait for it.

    Raises:
        UsageError: a path does not exist.
        StoreBusy: another process uses the store.
        EmbedderChanged: the collection was built with another embedder.
    """
    began = time.monotonic()
    command = "sleuth ingest --rebuild" if rebuild else "sleuth ingest"
    async with open_ingestion(settings, command=command, embedder=embedder, check_embedder=not rebuild) as ingestion:
        indexes = ingestion.collection.indexes
        if rebuild:
            await ingestion.rebuild(on_indexed=_Progress(on_progress, indexes.names[-1]).count_indexed)
        report = IngestReport(warnings=indexes.notes)
        if paths:
            report = await ingestion.run(paths, on_progress=on_progress, meta=meta)
    return replace(report, seconds=time.monotonic() - began)


@asynccontextmanager
async def open_ingestion(
    settings: Settings, *, command: str, embedder: Embedder | None = None, check_embedder: bool = True
) -> AsyncIterator["Ingestion"]:
    """Open the collection of a home to change it; `command` is the name of this process in the lock on the home.

    Raises:
        StoreBusy: another process holds the lock.
        EmbedderChanged: the collection was built with another embedder.
    """
    mode: LockMode = "exclusive" if check_embedder else "alone"  # searches wait for a rebuild with another embedder
    async with open_home(settings, mode, command=command) as home:
        embedder = embedder or await asyncio.to_thread(make_passage_embedder, settings)
        opening = Collection.open(settings, home=home, embedder=embedder, check_embedder=check_embedder)
        async with await opening as collection, Ingestion(collection) as ingestion:
            yield ingestion


class Ingestion:
    """Changes the documents of a collection. The caller holds the exclusive lock on SLEUTH_HOME.

    `close` ends the worker processes, which start when files are read.
    """

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._settings = collection.settings
        self._catalogue = collection.catalogue
        self._indexes = collection.indexes
        self._workers = make_workers(collection.settings)
        self.reader = BatchReader(collection.catalogue, self._workers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    @in_thread
    def close(self) -> None:
        """End the worker processes, also while they work."""
        self._workers.close()

    async def run(
        self,
        paths: Sequence[Path],
        *,
        on_progress: OnProgress | None = None,
        stopped: Callable[[], bool] = lambda: False,
        only: Container[Path] | None = None,
        meta: Mapping[str, str] = NO_META,
    ) -> IngestReport:
        """Ingest files, or those of them that are in `only`; stored documents are skipped.

        When `stopped` returns True, the ingest ends after the documents that were read, which are complete and in all
        indexes. If `keep_originals` is on, the files are copied, also those of unchanged documents.
        """
        began = time.monotonic()
        fields = own_fields(meta)
        roots = [await asyncio.to_thread(absolute, path) for path in paths]
        loaders = self._settings.loaders
        files, passed_over = await asyncio.to_thread(list_files, roots, loaders=loaders, only=only)
        progress = _Progress(on_progress, self._indexes.names[-1])
        progress.add(total=len(files))
        report = await self._read(files, stopped, fields, progress)
        await self.finish()
        nothing = [] if files else ["There is nothing to read there."]
        warnings = [*nothing, *report.warnings, *self._indexes.notes]
        return replace(report, warnings=warnings, passed_over=passed_over, seconds=time.monotonic() - began)

    async def delete(self, document_ids: Sequence[str]) -> int:
        """Delete documents from the catalogue and all indexes; raise UnknownName and delete none for an unknown one."""
        sources = await asyncio.to_thread(self._catalogue.sources_of_ids, document_ids)
        for id_ in document_ids:
            if id_ not in sources:
                await self.collection.document(id_)  # raises UnknownName
        await asyncio.to_thread(self._indexes.reset_if_ahead)
        deleted = await asyncio.to_thread(self._catalogue.delete_documents, document_ids)
        await asyncio.to_thread(self.collection.originals.delete_unused)  # on a full disk, the indexes need their space
        # The next search rebuilds an index without files.
        await self.collection.catch_up(await asyncio.to_thread(self._indexes.filled))
        await self.finish()
        return deleted

    async def rebuild(self, *, on_indexed: OnIndexed = ignore) -> None:
        """Rebuild the indexes from the catalogue with the present embedder; after a kill, the next use resumes it."""
        await asyncio.to_thread(self._indexes.clear)
        await self.collection.catch_up(on_indexed=on_indexed)
        await self.finish()

    @in_thread
    def put(self, entries: Sequence[Entry]) -> Stored:
        """Store documents in one transaction; the indexes are updated by the next search, or `Collection.catch_up`."""
        return self._put(entries)

    @in_thread
    def finish(self) -> None:
        """Delete unused vectors, names and file copies of deleted passages: the end of every change."""
        with suppress(MissingPart):  # without the part `triples` nobody reads them
            if self._indexes.name_vectors_file.exists():
                self.collection.name_graphs.prune()
        self.collection.originals.delete_unused()
        self._indexes.finish()

    async def _read(
        self, files: Sequence[Item], stopped: Callable[[], bool], meta: Mapping[str, str], progress: "_Progress"
    ) -> IngestReport:
        """Read files into the catalogue; update the indexes, the slow part, in parallel with the next batch."""
        counts, warnings = Counter[str](), list[str]()
        batches = self.reader.batches(files, stopped)
        indexing: asyncio.Task[None] | None = None
        try:
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                stored = await asyncio.to_thread(self._store, batch, meta)
                for failure in batch.failures:
                    progress.add(failure=failure)
                progress.add(files=batch.files, stored=stored.passages, differences=batch.files_of(stored))
                counts.update(added=stored.added, updated=stored.updated, unchanged=stored.unchanged)
                counts.update(failed=len(batch.failures), passages=stored.passages)
                warnings += [*map(str, batch.failures), *batch.notes]
                if indexing is not None:
                    await indexing
                indexing = asyncio.create_task(self.collection.catch_up(on_indexed=progress.count_indexed))
            await (indexing or self.collection.catch_up(on_indexed=progress.count_indexed))
        finally:
            if indexing is not None:
                indexing.cancel()
                await asyncio.gather(indexing, return_exceptions=True)
        fields: dict[str, Any] = {**counts, "warnings": warnings[:MAX_WARNINGS]}
        return IngestReport(**fields)

    def _store(self, batch: Batch, meta: Mapping[str, str]) -> Stored:
        """Store the documents of a batch, except unchanged ones, and start the analysis of their passages."""
        batch.entries = [replace(entry, given=meta) for entry in batch.entries]
        if self._settings.keep_originals:
            with self.collection.originals.lock:
                stored = self._put([replace(entry, original=self._copy(batch, entry)) for entry in batch.entries])
        else:
            stored = self._put(batch.entries)
        self._indexes.analyzer.start(self._workers.submit_analysis, *batch.new_passages(stored))
        new = [id for id, difference in stored.differences.items() if difference != "unchanged"]
        sources = {entry.document.id: entry.document.source for entry in batch.entries}
        copies = self._catalogue.copies(new)
        pairs = dict.fromkeys((sources[id], other) for id, other in copies.items())
        batch.notes += [
            f"{source}: {'contains a text twice' if other == source else f'has the same text as {other}'}."
            for source, other in pairs
        ]
        return stored

    def _put(self, entries: Sequence[Entry]) -> Stored:
        self._indexes.reset_if_ahead()
        if self.collection.embedder is not None and self._catalogue.embedder() is None:
            self._catalogue.set_embedder(self.collection.embedder.name)
        return self._catalogue.put_documents(entries)

    def _copy(self, batch: Batch, entry: Entry) -> str:
        """Copy the file of a document; return the name of the copy, empty if the file can no longer be read."""
        if (file := batch.sources.get(entry.document.id)) is None:
            return ""
        try:
            return self.collection.originals.add(read_original(*file))
        except DocumentError as error:
            _log.warning("no copy of %s is kept: the file %s", entry.document.source, error)
            return ""
        except OSError as error:
            raise StoreError(
                f"The copy of {entry.document.source} cannot be stored: {error.strerror}. Free some space, or set "
                "SLEUTH_KEEP_ORIGINALS=false, and ingest again."
            ) from error


class _Progress:
    """Adds up the counts of an ingest and passes the sums to a callback, in the event loop."""

    def __init__(self, on_progress: OnProgress | None, slowest: IndexName) -> None:
        self._counts = Counter[str]()
        self._on_progress = on_progress
        self._slowest = slowest
        self._loop = asyncio.get_running_loop()

    def add(
        self, *, failure: Failure | None = None, differences: Mapping[str, Difference] | None = None, **counts: int
    ) -> None:
        self._counts.update(counts)
        if self._on_progress is not None:
            self._on_progress(IngestProgress(**self._counts, failure=failure, differences=differences or {}))

    def count_indexed(self, index: IndexName, passages: int) -> None:
        """Count passages of the slowest index, which is updated last; from any thread."""
        if index == self._slowest:
            self._loop.call_soon_threadsafe(lambda: self.add(embedded=passages))


def own_fields(meta: Mapping[str, str]) -> dict[str, str]:
    """Return own fields in their stored form; raise UsageError for a name that cannot be one."""
    for name in meta:
        if not clean_meta({name: "a"}):
            raise UsageError(
                f"{name!r} cannot be an own field. Begin its name with a letter, use letters, digits, - and _, but "
                f"none of these: {', '.join(sorted(RESERVED))}."
            )
    cleaned = clean_meta(meta)
    return {key: cleaned.get(key, "") for key in ("_".join(name.lower().split()) for name in meta)}


def make_workers(settings: Settings) -> Workers:
    """Return the workers of an ingest; those of a cluster are connected when they are first needed."""
    bounds = Bounds(
        seconds=settings.file_seconds,
        megabytes=settings.file_megabytes,
        characters=settings.file_characters,
        ocr_languages=settings.ocr_languages,
    )
    if settings.ray:
        with needs_part("ray", "SLEUTH_RAY"):
            from sleuth.tools.ingestion.ray_cluster import RayWorkers

        return RayWorkers(settings.ray, loaders=settings.loaders, bounds=bounds)
    return LocalWorkers(settings.ingest_workers or default_workers(), loaders=settings.loaders, bounds=bounds)


def make_passage_embedder(settings: Settings) -> Embedder:
    """Return the embedder of the settings; with a cluster, a model that is loaded here embeds passages there."""
    embedder = make_embedder(settings)
    if settings.ray and isinstance(embedder, LocalEmbedder):
        with needs_part("ray", "SLEUTH_RAY"):
            from sleuth.tools.ingestion.ray_cluster import RayEmbedder

        return RayEmbedder(settings.ray, embedder)
    return embedder
