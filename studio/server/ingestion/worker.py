"""Background ingestion of uploads: one at a time, each owner's in the order in which they were sent.

An accepted upload is ingested or stopped, also after a kill. If it fails for a temporary reason, such as an embedder
that is down, it is retried until it succeeds. The owner's later uploads wait meanwhile, so that of two files of one
name the later one is kept.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import BinaryIO
from uuid import uuid4

from sleuth.graphs.ingestion.pipeline import IngestProgress, ingest_into
from sleuth.studio.server.ingestion.uploads import Failure, Ingest, Status, Uploads
from sleuth.studio.server.retry import retry_until_stored
from sleuth.studio.server.schemas.errors import STORE_AWAY, describe_failure
from sleuth.studio.server.telemetry.metrics import Telemetry
from sleuth.studio.server.tenants import Tenants
from sleuth.tools import errors
from sleuth.tools.storage import HomeLock, is_database_error, is_refused
from sleuth.tools.types import now

_log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two attempts to ingest an upload; the pause doubles up to the maximum."""

LOOK_SECONDS = 0.3
"""Seconds between two looks at an upload for a follower."""

PERMANENT_ERRORS = (errors.UsageError, errors.MissingExtra, errors.StoreTooNew, errors.EmbedderChanged)
"""Errors that a retry does not solve: a person has to fix the cause and send the files again."""


@dataclass(kw_only=True)
class _Pending:
    """An ingest that has not ended.

    `started`: some of its files may have been ingested. `began`: the monotonic time of its first file. `ended`: its end
    is being stored. `changed`: ends the pause between two attempts.
    """

    ingest: Ingest
    started: bool
    began: float = 0.0
    ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def is_stopping(self) -> bool:
        return self.ingest.status == "stopping"


class IngestionWorker:
    """Accepts uploads and ingests those of each owner in order; call `recover()` first."""

    def __init__(self, tenants: Tenants, home_lock: HomeLock, uploads: Uploads, telemetry: Telemetry) -> None:
        self._tenants = tenants
        self._home_lock = home_lock
        self.uploads = uploads
        self._pending: dict[str, _Pending] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The task that ingests the uploads of an owner."""
        self._telemetry = telemetry
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """The number of uploads that have not ended."""
        return len(self._pending)

    async def add(self, owner: str, files: Mapping[str, BinaryIO]) -> Ingest:
        """Store files by name and queue them; a kill loses none of them.

        Raises:
            StoreError: they cannot be stored; none of them was accepted.
        """
        ingest = Ingest(id=uuid4().hex[:12], owner=owner, files=tuple(files), total=len(files), at=now())
        await self.uploads.add(ingest, files)
        self._enqueue(ingest, started=False)
        return ingest

    async def get(self, owner: str, id: str) -> Ingest:
        """Return an owner's ingest; raise UnknownName if it does not exist."""
        pending = self._pending.get(id)
        found = pending.ingest if pending else await self.uploads.find(id)
        if found is None or found.owner != owner:
            raise errors.UnknownName("ingest", id, [])
        return found

    async def stop(self, owner: str, id: str) -> Ingest:
        """Ingest no further document of an upload, also after a restart; do nothing if it has ended."""
        ingest, pending = await self.get(owner, id), self._pending.get(id)
        if pending is None or pending.ended:
            return ingest
        if pending.started:
            pending.ingest = pending.ingest.model_copy(update={"status": "stopping"})
            pending.changed.set()
            await self.uploads.mark_stopping(id)
        else:
            await self._end(pending, "stopped")
        return pending.ingest

    async def follow(self, ingest: Ingest) -> AsyncIterator[Ingest]:
        """Yield an ingest now and after its changes, to its end.

        If another server ingests it, the number of read files is stored at the end only.
        """
        shown = None
        while not self._is_closed:
            ingest = await self.get(ingest.owner, ingest.id)
            if ingest != shown:
                yield ingest
            if ingest.done:
                return
            shown = ingest
            await asyncio.sleep(LOOK_SECONDS)

    async def recover(self) -> None:
        """Queue the uploads of the previous server, before new ones are accepted; raise StoreError."""
        await self.uploads.remove_orphans()
        for ingest in await self.uploads.unfinished():
            self._enqueue(ingest, started=True)

    async def close(self) -> None:
        """End all streams of followers, and interrupt the uploads; the next start ingests them."""
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ingest_all(self, owner: str) -> None:
        """Ingest the uploads of an owner in order; those of others wait for the lock of the home."""
        while pending := next((each for each in self._pending.values() if each.ingest.owner == owner), None):
            pause = FIRST_PAUSE
            await self._attempt(pending)
            while pending.ingest.id in self._pending:
                pending.changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await pending.changed.wait()
                pause = min(2 * pause, LONGEST_PAUSE)
                await self._attempt(pending)
        del self._tasks[owner]

    async def _attempt(self, pending: _Pending) -> None:
        """Ingest an upload; if that fails, end it, or leave it for the next attempt."""
        (error,) = await asyncio.gather(self._ingest(pending), return_exceptions=True)
        if error is None or pending.ended:
            return
        unexpected = None if isinstance(error, errors.SleuthError) else error
        _log.error("ingest %s failed: %s", pending.ingest.id, error, exc_info=unexpected)
        pending.ingest = _with_error(pending.ingest, error)
        if pending.is_stopping() or not _is_temporary(error):
            with suppress(errors.StoreError):  # the next attempt fails the same way
                await self._end_with_retry(pending, "stopped" if pending.is_stopping() else "failed")
                return
        if not pending.is_stopping():
            pending.ingest = pending.ingest.model_copy(update={"status": "waiting"})

    async def _ingest(self, pending: _Pending) -> None:
        """Ingest an upload from its beginning and store its end; documents that are stored already are skipped."""
        ingest, settings = pending.ingest, self._tenants.settings_of(pending.ingest.owner)
        collection = await self._tenants.collection(ingest.owner)
        async with self._home_lock.hold("exclusive", wait=math.inf):
            if pending.ended:
                return
            stored = await self.uploads.find(ingest.id)
            if stored and stored.done:  # by another server with this SLEUTH_HOME
                self._publish_end(pending, stored)
                return
            pending.started, pending.began = True, pending.began or monotonic()
            paths = await self.uploads.place(ingest)
            pending.ingest = pending.ingest.model_copy(update={"read": 0, "failed": ()})
            folder = self.uploads.folder_of(ingest.owner)

            def show(progress: IngestProgress) -> None:
                pending.ingest = _after(pending.ingest, progress, folder)

            await ingest_into(
                paths, settings=settings, collection=collection, on_progress=show, stopped=pending.is_stopping
            )
            await collection.catch_up()
            is_cut_short = pending.is_stopping() and pending.ingest.read < pending.ingest.total
            # Under the home lock: another server with this SLEUTH_HOME may wait to ingest the same upload.
            await self._end_with_retry(pending, "stopped" if is_cut_short else "done")

    async def _end_with_retry(self, pending: _Pending, status: Status) -> None:
        await retry_until_stored(partial(self._end, pending, status), f"The end of ingest {pending.ingest.id}")

    async def _end(self, pending: _Pending, status: Status) -> None:
        """Store the end of an ingest, remove its files, then publish the end."""
        pending.ended = True
        ingest = pending.ingest.model_copy(update={"status": status})
        try:
            await self.uploads.finish(ingest, is_placed=pending.started)
        except errors.StoreError:
            pending.ended = False
            raise
        self._publish_end(pending, ingest)

    def _publish_end(self, pending: _Pending, ingest: Ingest) -> None:
        del self._pending[ingest.id]
        seconds = monotonic() - pending.began if pending.began else 0.0
        failed = sum(bool(each.source) for each in ingest.failed)
        self._telemetry.count_ingest(ingest.status, seconds, read=ingest.read, failed=failed)
        pending.ingest = ingest

    def _enqueue(self, ingest: Ingest, *, started: bool) -> None:
        self._pending[ingest.id] = _Pending(ingest=ingest, started=started)
        if ingest.owner not in self._tasks and not self._is_closed:
            self._tasks[ingest.owner] = asyncio.create_task(self._ingest_all(ingest.owner))


def _after(ingest: Ingest, progress: IngestProgress, folder: Path) -> Ingest:
    """Return the ingest after a report of progress; files are named by their path in the owner's folder."""
    failed, outcomes = ingest.failed, dict(ingest.outcomes)
    if progress.failure:
        problem = progress.failure.replace(f"{folder}/", "")
        source = max((name for name in ingest.files if problem.startswith(name)), key=len, default="")
        failed = (*failed, Failure(source=source, problem=problem))
    for path, difference in progress.differences.items():
        if difference != "unchanged":  # after a retry it means: stored by this upload
            outcomes[str(Path(path).relative_to(folder))] = "replaced" if difference == "updated" else "added"
        else:
            outcomes.setdefault(str(Path(path).relative_to(folder)), "unchanged")
    status: Status = "stopping" if ingest.status == "stopping" else "reading"
    changes = {"status": status, "read": progress.files, "failed": failed, "outcomes": outcomes}
    return ingest.model_copy(update=changes)


def _is_temporary(error: BaseException) -> bool:
    """Return whether a retry may succeed without the files being sent again."""
    can_pass = isinstance(error, errors.SleuthError | OSError) or is_database_error(error)
    return can_pass and not (isinstance(error, PERMANENT_ERRORS) or is_refused(error))


def _with_error(ingest: Ingest, error: BaseException) -> Ingest:
    """Return the ingest with the error of the whole upload; it replaces an earlier one."""
    problem = STORE_AWAY if isinstance(error, OSError) else describe_failure(error)[0]
    of_files = (each for each in ingest.failed if each.source)
    return ingest.model_copy(update={"failed": (*of_files, Failure(source="", problem=problem))})
