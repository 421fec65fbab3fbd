"""Background ingestion of uploads: one at a time, each owner's in the order in which they were sent.

An accepted upload is ingested or stopped, also after a kill. If it fails for a temporary reason, such as an embedder
that is down, it is retried until it succeeds. The owner's later uploads wait meanwhile, so that of two files of one
name the later one is kept.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from sleuth.graphs.ingestion import IngestProgress, ingest_into
from sleuth.studio.server.ingestion.uploads import Failure, Ingest, Status, Uploads
from sleuth.studio.server.locks import SharedHomeLock
from sleuth.studio.server.retry import retry_until_stored
from sleuth.studio.server.schemas.errors import SERVER_FAILED, STORE_AWAY
from sleuth.studio.server.tenants import Tenants
from sleuth.tools import errors
from sleuth.tools.storage import is_database_error
from sleuth.tools.types import now

_log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two attempts to ingest an upload; the pause doubles up to the maximum."""

PERMANENT_ERRORS = (errors.UsageError, errors.MissingExtra, errors.StoreTooNew, errors.EmbedderChanged)
"""Errors that a retry does not solve: a person has to fix the cause and send the files again."""


@dataclass(kw_only=True)
class _Pending:
    """An ingest that has not ended, and its followers.

    `started`: some of its files may have been ingested. `ended`: its end is being stored. `problem`: the last logged
    error.
    """

    ingest: Ingest
    started: bool
    ended: bool = False
    problem: str = ""
    wakeups: set[asyncio.Event] = field(default_factory=set)

    def is_stopping(self) -> bool:
        return self.ingest.status == "stopping"

    def update(self, ingest: Ingest) -> None:
        self.ingest = ingest
        for wakeup in self.wakeups:
            wakeup.set()

    async def wait_for_update(self, max_wait: float) -> None:
        self.wakeups.add(wakeup := asyncio.Event())
        with suppress(TimeoutError):  # `wait_for` could swallow a cancellation that arrives with the update
            async with asyncio.timeout(max_wait):
                await wakeup.wait()
        self.wakeups.discard(wakeup)


class IngestionWorker:
    """Accepts uploads and ingests them in order; call `recover()` first, and keep `run()` active."""

    def __init__(self, tenants: Tenants, home_lock: SharedHomeLock, uploads: Uploads) -> None:
        self._tenants = tenants
        self._home_lock = home_lock
        self._uploads = uploads
        self._pending: dict[str, _Pending] = {}
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._ingesting = asyncio.Lock()

    async def add(self, owner: str, files: Mapping[str, BinaryIO]) -> Ingest:
        """Store files by name and queue them; a kill loses none of them.

        Raises:
            StoreError: they cannot be stored; none of them was accepted.
        """
        ingest = Ingest(id=uuid4().hex[:12], owner=owner, files=tuple(files), total=len(files), at=now())
        await asyncio.to_thread(self._uploads.add, ingest, files)
        self._enqueue(ingest, started=False)
        return ingest

    async def get(self, owner: str, id: str) -> Ingest:
        """Return an owner's ingest; raise UnknownName if it does not exist."""
        pending = self._pending.get(id)
        found = pending.ingest if pending else await asyncio.to_thread(self._uploads.find, id)
        if found is None or found.owner != owner:
            raise errors.UnknownName("ingest", id, [])
        return found

    async def stop(self, owner: str, id: str) -> Ingest:
        """Ingest no further document of an upload, also after a restart; do nothing if it has ended."""
        ingest, pending = await self.get(owner, id), self._pending.get(id)
        if pending is None or pending.ended:
            return ingest
        if pending.started:
            pending.update(replace(pending.ingest, status="stopping"))
            await asyncio.to_thread(self._uploads.mark_stopping, id)
        else:
            await self._end(pending, "stopped")
        return pending.ingest

    async def follow(self, ingest: Ingest) -> AsyncIterator[Ingest]:
        """Yield an ingest now and after each change, to its end."""
        pending, wakeup = self._pending.get(ingest.id), asyncio.Event()
        if pending is None:  # it may have ended since the caller read it
            ended = await asyncio.to_thread(self._uploads.find, ingest.id)
            yield ended or ingest
            return
        pending.wakeups.add(wakeup)
        try:
            while True:
                wakeup.clear()
                ingest, is_removed = pending.ingest, ingest.id not in self._pending
                yield ingest
                if ingest.done or is_removed:
                    return
                await wakeup.wait()
        finally:
            pending.wakeups.discard(wakeup)

    async def recover(self) -> None:
        """Queue the uploads of the previous server, before new ones are accepted; raise StoreError."""
        await asyncio.to_thread(self._uploads.remove_orphans)
        for ingest in await asyncio.to_thread(self._uploads.unfinished):
            self._enqueue(ingest, started=True)

    async def run(self) -> None:
        """Ingest queued uploads, until cancelled."""
        queues: dict[str, asyncio.Queue[_Pending]] = {}
        async with asyncio.TaskGroup() as owners:
            while True:
                pending = self._pending.get(await self._queue.get())
                if pending is None:  # stopped before its turn
                    continue
                owner = pending.ingest.owner
                if owner not in queues:
                    queues[owner] = asyncio.Queue()
                    owners.create_task(self._run_owner(queues[owner]))
                queues[owner].put_nowait(pending)

    def folder_of(self, owner: str) -> Path:
        """Return the folder of an owner's files while they are ingested; a document's source is a path in it."""
        return self._uploads.folder_of(owner)

    def close(self) -> None:
        """End all streams of followers."""
        closed, self._pending = self._pending, {}
        for pending in closed.values():
            pending.update(pending.ingest)

    async def _run_owner(self, queue: asyncio.Queue[_Pending]) -> None:
        """Ingest the uploads of one owner."""
        while True:
            pending, pause = await queue.get(), FIRST_PAUSE
            while not pending.ended:
                (problem,) = await asyncio.gather(self._ingest(pending), return_exceptions=True)
                if isinstance(problem, BaseException):
                    await self._handle_error(pending, problem, pause)
                    pause = min(2 * pause, LONGEST_PAUSE)

    async def _handle_error(self, pending: _Pending, error: BaseException, pause: float) -> None:
        """End an ingest that failed permanently, or wait before the next attempt."""
        if pending.ended:  # stopped while it was queued
            return
        if str(error) != pending.problem:
            unexpected = None if isinstance(error, errors.SleuthError) else error
            _log.error("ingest %s failed: %s", pending.ingest.id, error, exc_info=unexpected)
            pending.problem = str(error)
        pending.ingest, stopping = _with_error(pending.ingest, error), pending.is_stopping()
        if stopping or not _is_temporary(error):
            with suppress(errors.StoreError):  # the next attempt fails the same way
                await self._end_with_retry(pending, "stopped" if stopping else "failed")
                return
        pending.update(pending.ingest if pending.is_stopping() else replace(pending.ingest, status="waiting"))
        await pending.wait_for_update(pause)

    async def _ingest(self, pending: _Pending) -> None:
        """Ingest an upload from its beginning and store its end; documents that are stored already are skipped."""
        ingest, settings = pending.ingest, self._tenants.settings_of(pending.ingest.owner)
        library = await self._tenants.library(ingest.owner)
        async with self._ingesting, self._home_lock.hold("exclusive", max_wait=math.inf):
            if pending.ended or await self._has_ended_elsewhere(pending):
                return
            pending.started = True
            paths = await asyncio.to_thread(self._uploads.place, ingest)
            pending.update(replace(pending.ingest, read=0, failed=()))

            def show(progress: IngestProgress) -> None:
                pending.update(_after(pending.ingest, progress, paths))

            await ingest_into(paths, settings=settings, library=library, on_progress=show, stopped=pending.is_stopping)
            await library.catch_up()
            is_cut_short = pending.is_stopping() and pending.ingest.read < pending.ingest.total
            # Under the home lock: another server with this SLEUTH_HOME may wait to ingest the same upload.
            await self._end_with_retry(pending, "stopped" if is_cut_short else "done")

    async def _has_ended_elsewhere(self, pending: _Pending) -> bool:
        """Return whether another server with this SLEUTH_HOME has finished an ingest; if so, publish its end."""
        found = await asyncio.to_thread(self._uploads.find, pending.ingest.id)
        if found is None or not found.done:
            return False
        pending.ended = True
        self._pending.pop(found.id, None)
        pending.update(found)
        return True

    async def _end_with_retry(self, pending: _Pending, status: Status) -> None:
        await retry_until_stored(partial(self._end, pending, status), f"The end of ingest {pending.ingest.id}")

    async def _end(self, pending: _Pending, status: Status) -> None:
        """Store the end of an ingest, remove its files, then publish the end."""
        pending.ended = True
        ingest = replace(pending.ingest, status=status)
        try:
            await asyncio.to_thread(self._uploads.finish, ingest, is_placed=pending.started)
        except errors.StoreError:
            pending.ended = False
            raise
        self._pending.pop(ingest.id, None)
        pending.update(ingest)

    def _enqueue(self, ingest: Ingest, *, started: bool) -> None:
        self._pending[ingest.id] = _Pending(ingest=ingest, started=started)
        self._queue.put_nowait(ingest.id)


def _after(ingest: Ingest, progress: IngestProgress, paths: Sequence[Path]) -> Ingest:
    failed = ingest.failed
    if progress.failure:
        problem = progress.failure.replace(f"{paths[0].parent}/", "")
        source = max((path.name for path in paths if path.name in problem), key=len, default="")
        failed = (*failed, Failure(source=source, problem=problem))
    status: Status = "stopping" if ingest.status == "stopping" else "reading"
    return replace(ingest, status=status, read=progress.files, failed=failed)


def _is_temporary(error: BaseException) -> bool:
    """Return whether a retry may succeed without the files being sent again."""
    can_pass = isinstance(error, errors.SleuthError | OSError) or is_database_error(error)
    return can_pass and not isinstance(error, PERMANENT_ERRORS)


def _with_error(ingest: Ingest, error: BaseException) -> Ingest:
    """Return the ingest with the error of the whole upload; it replaces an earlier one."""
    if isinstance(error, errors.SleuthError):
        problem = str(error)
    elif is_database_error(error) or isinstance(error, OSError):
        problem = STORE_AWAY
    else:
        problem = SERVER_FAILED
    of_files = (each for each in ingest.failed if each.source)
    return replace(ingest, failed=(*of_files, Failure(source="", problem=problem)))
