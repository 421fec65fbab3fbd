"""Uploads on their way into a collection: one after the other, each owner's in the order in which they were sent.

What was taken is read in, or stopped. Where that fails for a reason that passes, such as an embedder that is away, it
is tried again until it does not; that owner's later uploads wait meanwhile, so that of two files of one name the later
one stays.
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
from sleuth.studio.server.home_lock import Door
from sleuth.studio.server.ingestion.uploads import Failure, Ingest, Status, Uploads
from sleuth.studio.server.retry import until_stored
from sleuth.studio.server.schemas.errors import STORE_AWAY
from sleuth.studio.server.tenants import Tenants
from sleuth.tools import errors
from sleuth.tools.storage import is_database_error
from sleuth.tools.types import now

_log = logging.getLogger(__name__)

SOON, LATE = 1.0, 60.0
"""Seconds between two attempts to read an upload in: at first, and at most."""

FOR_PEOPLE = (errors.UsageError, errors.MissingExtra, errors.StoreTooNew, errors.EmbedderChanged)
"""What does not pass by itself: somebody has to do something, and sends the files again."""


@dataclass(kw_only=True)
class _Waiting:
    """An ingest, and those who follow it; `begun` once something of it may have been read, `ended` as it ends.

    `problem` is what the log has of it.
    """

    ingest: Ingest
    begun: bool
    ended: bool = False
    problem: str = ""
    bells: set[asyncio.Event] = field(default_factory=set)

    def stopping(self) -> bool:
        return self.ingest.status == "stopping"

    def tell(self, ingest: Ingest) -> None:
        self.ingest = ingest
        for bell in self.bells:
            bell.set()

    async def changed(self, within: float) -> None:
        """Waits so many seconds for news of it."""
        self.bells.add(bell := asyncio.Event())
        with suppress(TimeoutError):  # `wait_for` could swallow a cancellation that comes with the news
            async with asyncio.timeout(within):
                await bell.wait()
        self.bells.discard(bell)


class Ingests:
    """Takes uploads and reads them in, in their order; after `pick_up()`, and while `run()` is under way."""

    def __init__(self, tenants: Tenants, door: Door, uploads: Uploads) -> None:
        self._tenants = tenants
        self._door = door
        self._uploads = uploads
        self._waiting: dict[str, _Waiting] = {}
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._turn = asyncio.Lock()

    async def add(self, owner: str, files: Mapping[str, BinaryIO]) -> Ingest:
        """Keeps files, by their names, and reads them in when it is their turn; a kill loses none of them.

        Raises:
            StoreError: they cannot be kept; none of them is.
        """
        ingest = Ingest(id=uuid4().hex[:12], owner=owner, files=tuple(files), total=len(files), at=now())
        await asyncio.to_thread(self._uploads.keep, ingest, files)
        self._enter(ingest, begun=False)
        return ingest

    async def get(self, owner: str, id: str) -> Ingest:
        """An owner's ingest; raises UnknownName where there is none."""
        waiting = self._waiting.get(id)
        found = waiting.ingest if waiting else await asyncio.to_thread(self._uploads.find, id)
        if found is None or found.owner != owner:
            raise errors.UnknownName("ingest", id, [])
        return found

    async def stop(self, owner: str, id: str) -> Ingest:
        """Reads no further document of an ingest, whatever happens from here on; one that has ended is let be."""
        ingest, waiting = await self.get(owner, id), self._waiting.get(id)
        if waiting is None or waiting.ended:
            return ingest
        if waiting.begun:
            waiting.tell(replace(waiting.ingest, status="stopping"))
            await asyncio.to_thread(self._uploads.mark_stopping, id)
        else:
            await self._end(waiting, "stopped")
        return waiting.ingest

    async def follow(self, ingest: Ingest) -> AsyncIterator[Ingest]:
        """How an ingest stands, now and after each change, to its end."""
        waiting, bell = self._waiting.get(ingest.id), asyncio.Event()
        if waiting is None:  # it may have ended since it was looked up
            ended = await asyncio.to_thread(self._uploads.find, ingest.id)
            yield ended or ingest
            return
        waiting.bells.add(bell)
        try:
            while True:
                bell.clear()
                ingest, over = waiting.ingest, ingest.id not in self._waiting
                yield ingest
                if ingest.done or over:
                    return
                await bell.wait()
        finally:
            waiting.bells.discard(bell)

    async def pick_up(self) -> None:
        """Takes in what the last server left, before anybody asks for it; raises StoreError."""
        await asyncio.to_thread(self._uploads.sweep)
        for ingest in await asyncio.to_thread(self._uploads.left):
            self._enter(ingest, begun=True)

    async def run(self) -> None:
        """Reads in what waits, until it is cancelled."""
        queues: dict[str, asyncio.Queue[_Waiting]] = {}
        async with asyncio.TaskGroup() as owners:
            while True:
                waiting = self._waiting.get(await self._queue.get())
                if waiting is None:  # stopped before its turn
                    continue
                owner = waiting.ingest.owner
                if owner not in queues:
                    queues[owner] = asyncio.Queue()
                    owners.create_task(self._serve(queues[owner]))
                queues[owner].put_nowait(waiting)

    def folder_of(self, owner: str) -> Path:
        """Where an owner's files are while they are read; a document's source is a path in it."""
        return self._uploads.folder_of(owner)

    def close(self) -> None:
        """Lets go of those who follow."""
        left, self._waiting = self._waiting, {}
        for waiting in left.values():
            waiting.tell(waiting.ingest)

    async def _serve(self, queue: asyncio.Queue[_Waiting]) -> None:
        """Reads in what one owner sends."""
        while True:
            waiting, pause = await queue.get(), SOON
            while not waiting.ended:
                (problem,) = await asyncio.gather(self._read(waiting), return_exceptions=True)
                if isinstance(problem, BaseException):
                    await self._fail(waiting, problem, pause)
                    pause = min(2 * pause, LATE)

    async def _fail(self, waiting: _Waiting, error: BaseException, pause: float) -> None:
        """Ends an ingest that cannot be read in, or waits until it is tried again."""
        if waiting.ended:  # stopped while it waited for its turn
            return
        if str(error) != waiting.problem:
            ours = None if isinstance(error, errors.SleuthError) else error
            _log.error("ingest %s cannot be read in: %s", waiting.ingest.id, error, exc_info=ours)
            waiting.problem = str(error)
        waiting.ingest, stopping = _failed(waiting.ingest, error), waiting.stopping()
        if stopping or not _passes(error):
            with suppress(errors.StoreError):  # which the next attempt meets too
                await self._end_surely(waiting, "stopped" if stopping else "failed")
                return
        waiting.tell(waiting.ingest if waiting.stopping() else replace(waiting.ingest, status="waiting"))
        await waiting.changed(pause)

    async def _read(self, waiting: _Waiting) -> None:
        """Reads an ingest in from its beginning, and writes down that this is done; what is stored is skipped."""
        ingest, settings = waiting.ingest, self._tenants.settings_of(waiting.ingest.owner)
        library = await self._tenants.library(ingest.owner)
        async with self._turn, self._door.open("exclusive", patience=math.inf):
            if waiting.ended or await self._is_elsewhere(waiting):
                return
            waiting.begun = True
            paths = await asyncio.to_thread(self._uploads.place, ingest)
            waiting.tell(replace(waiting.ingest, read=0, failed=()))

            def show(progress: IngestProgress) -> None:
                waiting.tell(_after(waiting.ingest, progress, paths))

            await ingest_into(paths, settings=settings, library=library, on_progress=show, stopped=waiting.stopping)
            await library.catch_up()
            cut = waiting.stopping() and waiting.ingest.read < waiting.ingest.total
            # Before the door opens: another server with this SLEUTH_HOME may wait to read the same.
            await self._end_surely(waiting, "stopped" if cut else "done")

    async def _is_elsewhere(self, waiting: _Waiting) -> bool:
        """Whether another server with this SLEUTH_HOME has brought an ingest to its end; then that is told."""
        found = await asyncio.to_thread(self._uploads.find, waiting.ingest.id)
        if found is None or not found.done:
            return False
        waiting.ended = True
        self._waiting.pop(found.id, None)
        waiting.tell(found)
        return True

    async def _end_surely(self, waiting: _Waiting, status: Status) -> None:
        await until_stored(partial(self._end, waiting, status), f"The end of ingest {waiting.ingest.id}")

    async def _end(self, waiting: _Waiting, status: Status) -> None:
        """Nothing more will happen to an ingest: its files go, and then those who follow it are told."""
        waiting.ended = True
        ingest = replace(waiting.ingest, status=status)
        try:
            await asyncio.to_thread(self._uploads.finish, ingest, placed=waiting.begun)
        except errors.StoreError:
            waiting.ended = False
            raise
        self._waiting.pop(ingest.id, None)
        waiting.tell(ingest)

    def _enter(self, ingest: Ingest, *, begun: bool) -> None:
        self._waiting[ingest.id] = _Waiting(ingest=ingest, begun=begun)
        self._queue.put_nowait(ingest.id)


def _after(ingest: Ingest, progress: IngestProgress, paths: Sequence[Path]) -> Ingest:
    failed = ingest.failed
    if progress.failure:
        problem = progress.failure.replace(f"{paths[0].parent}/", "")
        source = max((path.name for path in paths if path.name in problem), key=len, default="")
        failed = (*failed, Failure(source=source, problem=problem))
    status: Status = "stopping" if ingest.status == "stopping" else "reading"
    return replace(ingest, status=status, read=progress.files, failed=failed)


def _passes(error: BaseException) -> bool:
    """Whether what has failed may go well later, without anybody who sends the files again."""
    passing = isinstance(error, errors.SleuthError | OSError) or is_database_error(error)
    return passing and not isinstance(error, FOR_PEOPLE)


def _failed(ingest: Ingest, error: BaseException) -> Ingest:
    """With the reason why none of it can be read, in the place of an earlier one."""
    if isinstance(error, errors.SleuthError):
        problem = str(error)
    elif is_database_error(error) or isinstance(error, OSError):
        problem = STORE_AWAY
    else:
        problem = "The server failed; its log says why."
    return replace(
        ingest, failed=(*(each for each in ingest.failed if each.source), Failure(source="", problem=problem))
    )
