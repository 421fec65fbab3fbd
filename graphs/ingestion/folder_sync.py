"""Synchronization of a collection with a folder: compare, then ingest what differs and delete what no longer exists."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from pathlib import Path

from pydantic import TypeAdapter

from sleuth.graphs.ingestion.pipeline import IngestProgress, IngestReport, OnProgress, ingest_into
from sleuth.tools.collection import Collection
from sleuth.tools.collection.folder_diff import FolderDiff
from sleuth.tools.errors import StoreBusy
from sleuth.tools.optional_imports import extra
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

UNREADABLE = "unreadable.json"
"""File in SLEUTH_HOME with the hash of every file that a synchronization has named as unreadable, by its path."""
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
        diff = await collection.compare_folder(folder, changed)
    return await asyncio.to_thread(_without_named, diff, settings.home / UNREADABLE)


async def apply_diff(diff: FolderDiff, *, settings: Settings, on_progress: OnProgress | None = None) -> SyncReport:
    """Ingest the files that differ, then delete documents that no longer exist.

    Documents are deleted last, so a document that moved to another file keeps its triples. Files that cannot be read
    are stored, so that each is named once for each content.

    Raises:
        StoreBusy: another process uses the store.
        EmbedderChanged: the collection was built with another embedder.
    """
    failures = [*diff.failures]

    def show(progress: IngestProgress) -> None:
        failures.extend([progress.failure] if progress.failure else [])
        if on_progress:
            on_progress(progress)

    report = SyncReport() if diff.is_empty() else await _apply(diff, settings, show)
    await asyncio.to_thread(_store_named, failures, settings.home / UNREADABLE)
    return report


async def _apply(diff: FolderDiff, settings: Settings, on_progress: OnProgress) -> SyncReport:
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


def _without_named(diff: FolderDiff, file: Path) -> FolderDiff:
    """Return the difference without files that were named before and have the same content."""
    named = _read_named(file)

    def is_named(path: Path) -> bool:
        return str(path) in named and named[str(path)] == _content(path)

    new = {name: path for name in diff.added if (path := diff.folder / name) in diff.paths and is_named(path)}
    known = {each: found for each in diff.failures if (found := _path_in(each)) and is_named(found)}
    return replace(
        diff,
        added=tuple(name for name in diff.added if name not in new),
        paths=diff.paths - {*new.values()},
        failures=tuple(each for each in diff.failures if each not in known),
        unreadable=(*new, *(os.path.relpath(path, diff.folder) for path in {*known.values()})),
    )


def _store_named(failures: Iterable[str], file: Path) -> None:
    """Store the contents of the files that were just named; forget files that no longer exist."""
    found = {path: _content(path) for path in map(_path_in, failures) if path}
    if found:
        named = {path: content for path, content in _read_named(file).items() if Path(path).exists()}
        new = file.with_suffix(".new")
        new.write_text(json.dumps(named | {str(path): content for path, content in found.items()}), encoding="utf-8")
        new.replace(file)


def _read_named(file: Path) -> dict[str, str]:
    return TypeAdapter(dict[str, str]).validate_json(file.read_bytes()) if file.is_file() else {}


def _content(path: Path) -> str:
    """Return a hash of a file; of one that cannot be opened, a text with its size and times."""
    try:
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest()
    except OSError:
        return str(path.stat()) if path.exists() else ""


def _path_in(failure: str) -> Path | None:
    """Return the file with which the reason for a failure begins; perhaps an archive that contains the file."""
    named = (Path(failure[: place.start()]) for place in re.finditer("[:,]", failure))
    return next((path for each in named for path in (each, *each.parents) if os.path.isfile(path)), None)  # noqa: PTH113


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
            report = await apply_diff(diff, settings=settings)
        except StoreBusy:
            continue
        waiting = frozenset()
        if not diff.is_empty():
            yield diff, report
