"""Synchronization of a collection with a folder: compare, then ingest what differs and delete what no longer exists."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path

from pydantic import TypeAdapter

from sleuth.tools.collection import Collection
from sleuth.tools.errors import StoreBusy, UsageError, extra
from sleuth.tools.ingestion.batch_reader import Failure
from sleuth.tools.ingestion.folder_diff import FolderDiff, compare_files
from sleuth.tools.ingestion.ingestion import (
    NO_META,
    Ingestion,
    IngestProgress,
    IngestReport,
    OnProgress,
    open_ingestion,
)
from sleuth.tools.settings import Settings

UNREADABLE = "unreadable.json"
"""File in SLEUTH_HOME with the hash of every file that a synchronization has named as unreadable, by its path."""
RETRY_SECONDS = 5.0
"""Time after which a change that could not be applied, since the store was in use, is retried."""


async def compare_folder(folder: Path, *, settings: Settings, changed: frozenset[Path] | None = None) -> FolderDiff:
    """Return what `apply_diff` would change; nothing is changed and no lock is taken.

    Args:
        folder: Absolute path.
        settings: Settings with the collection.
        changed: The files and folders that may have changed; all if None.

    Raises:
        UsageError: the folder does not exist, or is a file.
    """
    opening = Collection.open(settings, check_embedder=False)
    async with await opening as collection, Ingestion(collection) as ingestion:
        diff = await asyncio.to_thread(compare_files, folder, changed, collection, ingestion.reader)
    return await asyncio.to_thread(_without_named, diff, settings.home / UNREADABLE)


async def apply_diff(
    diff: FolderDiff,
    *,
    settings: Settings,
    on_progress: OnProgress | None = None,
    meta: Mapping[str, str] = NO_META,
    mass_removal: bool = False,
) -> IngestReport:
    """Ingest the files that differ, then delete documents that no longer exist.

    Documents are deleted last, so a document that moved to another file keeps its triples. Files that cannot be read
    are stored, so that each is named once for each content. `meta` are own fields of the documents that are ingested.

    Raises:
        UsageError: more than half of the folder's documents would be lost, and `mass_removal` does not allow it.
        StoreBusy: another process uses the store.
        EmbedderChanged: the collection was built with another embedder.
    """
    if diff.lost and not mass_removal:
        raise UsageError(
            f"The files of {diff.lost} of {diff.stored} documents of {diff.folder} are gone, so nothing was changed. "
            "Check that the folder is mounted and complete, or remove the documents with --allow-mass-removal."
        )
    failures = [*diff.failures]

    def report_progress(progress: IngestProgress) -> None:
        if progress.failure:
            failures.append(progress.failure)
        if on_progress:
            on_progress(progress)

    report = IngestReport()
    if not diff.is_empty():
        async with open_ingestion(settings, command="sleuth sync") as ingestion:
            if diff.paths:
                report = await ingestion.run([diff.folder], on_progress=report_progress, only=diff.paths, meta=meta)
            stored = await ingestion.collection.known_ids(list(diff.removed))
            removed = [id_ for id_ in diff.removed if id_ in stored]
            report = replace(report, removed=await ingestion.delete(removed) if removed else 0)
    await asyncio.to_thread(_store_named, failures, settings.home / UNREADABLE)
    return report


def _without_named(diff: FolderDiff, file: Path) -> FolderDiff:
    """Return the difference without files that were named before and have the same content."""
    named = _read_named(file)

    def is_named(path: Path) -> bool:
        return str(path) in named and named[str(path)] == _content(path)

    named_added = {name: path for name in diff.added if (path := diff.folder / name) in diff.paths and is_named(path)}
    named_failed = {failure.path for failure in diff.failures if is_named(failure.path)}
    return replace(
        diff,
        added=tuple(name for name in diff.added if name not in named_added),
        paths=diff.paths - {*named_added.values()},
        failures=tuple(failure for failure in diff.failures if failure.path not in named_failed),
        unreadable=(*named_added, *(os.path.relpath(path, diff.folder) for path in named_failed)),
    )


def _store_named(failures: Iterable[Failure], file: Path) -> None:
    """Store the contents of the files that were just named; forget files that no longer exist."""
    contents = {str(failure.path): _content(failure.path) for failure in failures}
    if contents:
        named = {path: content for path, content in _read_named(file).items() if os.path.exists(path)}  # noqa: PTH110
        new = file.with_suffix(".new")
        new.write_text(json.dumps(named | contents), encoding="utf-8")
        new.replace(file)


def _read_named(file: Path) -> dict[str, str]:
    return TypeAdapter(dict[str, str]).validate_json(file.read_bytes()) if file.is_file() else {}


def _content(path: Path) -> str:
    """Return a hash of a file; of one that cannot be opened, a text with its size and times."""
    try:
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest()
    except OSError:
        return str(path.stat()) if os.path.exists(path) else ""  # noqa: PTH110 - Path.exists raises in a closed folder


async def follow_folder(
    folder: Path, *, settings: Settings, stop: asyncio.Event | None = None, meta: Mapping[str, str] = NO_META
) -> AsyncIterator[tuple[FolderDiff, IngestReport]]:
    """Keep a collection equal to a folder; yield each difference when it was applied.

    While another process uses the store, changes wait. Raises as `apply_diff`.

    Args:
        folder: Absolute path.
        settings: Settings with the collection.
        stop: Ends it when set, after the present difference was applied. Set it instead of cancelling: `awatch` can
            lose a cancellation.
        meta: Own fields of the documents that are ingested.
    """
    with extra("sync", "Watching a folder"):
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
            report = await apply_diff(diff, settings=settings, meta=meta)
        except StoreBusy:
            continue
        waiting = frozenset()
        if not diff.is_empty():
            yield diff, report
