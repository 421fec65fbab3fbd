"""Synchronization of a collection with a folder: compare, then ingest what differs and delete what no longer exists."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from sleuth.graphs.ingestion.pipeline import IngestReport, OnProgress, ingest_into
from sleuth.tools.collection import Collection
from sleuth.tools.collection.folder_diff import FolderDiff
from sleuth.tools.errors import StoreBusy
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

RETRY_SECONDS = 5.0
"""Time after which a change is tried again that could not be applied, since the store was in use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncReport:
    """Result of a synchronization: the report of the ingest, and the number of deleted documents."""

    ingest: IngestReport = field(default_factory=IngestReport)
    removed: int = 0


async def compare_folder(folder: Path, *, settings: Settings, changed: frozenset[Path] | None = None) -> FolderDiff:
    """Return what `apply_diff` would change; nothing is changed and no lock is taken.

    Args:
        folder: Absolute path.
        settings: Settings with the collection.
        changed: The files and folders that may have changed; all if None.

    Raises:
        UsageError: the folder does not exist, or is a file.
    """
    async with await Collection.open(settings, check_embedder=False) as collection:
        return await collection.compare_folder(folder, changed)


async def apply_diff(diff: FolderDiff, *, settings: Settings, on_progress: OnProgress | None = None) -> SyncReport:
    """Ingest the files that differ, then delete documents that no longer exist.

    Documents are deleted last, so a document that moved to another file keeps its triples.

    Raises:
        StoreBusy: another process uses the store.
        EmbedderChanged: the collection was built with another embedder.
    """
    if diff.is_empty():
        return SyncReport()
    async with (
        hold(settings.home, "exclusive", command="sleuth sync", wait=settings.wait),
        await Collection.open(settings) as collection,
    ):
        report = IngestReport()
        if diff.paths:
            report = await ingest_into(
                [diff.folder], settings=settings, collection=collection, on_progress=on_progress, only=diff.paths
            )
        known = await collection.known_ids(list(diff.removed))
        removed = await collection.delete([id_ for id_ in diff.removed if id_ in known]) if known else 0
        return SyncReport(ingest=report, removed=removed)


async def follow_folder(
    folder: Path, *, settings: Settings, stop: asyncio.Event | None = None
) -> AsyncIterator[tuple[FolderDiff, SyncReport]]:
    """Keep a collection equal to a folder; yield each difference when it was applied.

    While another process uses the store, changes wait.

    Args:
        folder: Absolute path.
        settings: Settings with the collection.
        stop: Ends it when set, after the present difference was applied. Set it instead of cancelling: `awatch` can
            lose a cancellation.
    """
    from watchfiles import awatch

    waiting = frozenset({folder})  # what has changed before the first event is compared as well
    timeout = round(1000 * RETRY_SECONDS)
    async for changes in awatch(
        folder, watch_filter=None, rust_timeout=timeout, yield_on_timeout=True, stop_event=stop
    ):
        waiting |= {Path(path) for _, path in changes}
        if not waiting:
            continue
        try:
            diff = await compare_folder(folder, settings=settings, changed=waiting)
            report = await apply_diff(diff, settings=settings)
        except StoreBusy:
            continue
        waiting = frozenset()
        if not diff.is_empty():
            yield diff, report
