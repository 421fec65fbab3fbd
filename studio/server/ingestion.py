"""Uploads: their files below SLEUTH_HOME, a row with the progress of each, and the worker that ingests them.

The files of an upload wait in its own folder. At their turn they move to their owner's folder, so that a file that is
sent again replaces the document of the same name; afterwards the catalogue contains their text. Servers that share the
rows process only the uploads whose files are in their SLEUTH_HOME.

One upload is ingested at a time, each owner's in the order in which they were sent. An accepted upload is ingested or
stopped, also after a kill. If it fails for a temporary reason, such as an embedder that is down, it is retried until it
succeeds. The owner's later uploads wait meanwhile, so that of two files of one name the later one is kept.
"""

import asyncio
import logging
import math
import os
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, computed_field
from sqlalchemy import Column, ColumnElement, MetaData, String, Table, Text, insert, select, update
from sqlalchemy.engine import Engine

from sleuth.studio.server.retry import retry_until_stored
from sleuth.studio.server.schemas.errors import STORE_AWAY, describe_failure
from sleuth.studio.server.telemetry.metrics import Telemetry
from sleuth.studio.tenants import Tenants
from sleuth.tools import errors
from sleuth.tools.documents.loading import SIDECAR
from sleuth.tools.ingestion.ingestion import Ingestion, IngestProgress
from sleuth.tools.storage.database import in_thread, is_database_error, is_refused, make_tables, transaction
from sleuth.tools.types import now

_log = logging.getLogger(__name__)

Outcome = Literal["added", "replaced", "unchanged"]

Status = Literal["waiting", "reading", "stopping", "stopped", "done", "failed"]
ENDS: tuple[Status, ...] = ("stopped", "done", "failed")

_OWNERS = "of-"

HOUR = 3600.0
"""Age in seconds at which a file without an upload is removed; storing an upload takes less time."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two attempts to ingest an upload; the pause doubles up to the maximum."""

LOOK_SECONDS = 0.3
"""Seconds between two looks at an upload for a follower."""

PERMANENT_ERRORS = (errors.UsageError, errors.MissingExtra, errors.StoreTooNew, errors.EmbedderChanged)
"""Errors that a retry does not solve: a person has to fix the cause and send the files again."""

metadata = MetaData()
ingests = Table(
    "sleuth_serve_ingests",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner", String(100), nullable=False),
    Column("status", String(10), nullable=False),
    Column("at", String(40), nullable=False),
    Column("progress", Text, nullable=False),
)

_IS_UNFINISHED = ingests.c.status.not_in(ENDS)


class Failure(BaseModel):
    """A file that could not be ingested; with an empty `source`, the error of the whole upload."""

    model_config = ConfigDict(frozen=True)

    source: str
    problem: str


class Ingest(BaseModel):
    """The progress of an upload; a file's name may contain folders."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)

    id: str
    owner: str = Field(default="", exclude=True)
    files: tuple[str, ...]
    status: Status = "waiting"
    read: int = 0
    total: int = Field(default=0, description="files to read; once it has begun, the files in an archive count")
    failed: tuple[Failure, ...] = ()
    at: str = ""
    outcomes: dict[str, Outcome] = Field(default={}, description="of the files ingested so far")

    @computed_field  # type: ignore[prop-decorator]  # mypy supports no decorator on a property
    @property
    def done(self) -> bool:
        """True if the ingest has ended."""
        return self.status in ENDS


class Uploads:
    """Store of uploads and their files. All methods raise StoreError if the database fails."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        """Create the table if it is missing; blocks."""
        self._engine = engine
        self._folder = folder
        make_tables(engine, metadata)

    @in_thread
    def add(self, ingest: Ingest, files: Mapping[str, BinaryIO]) -> None:
        """Store the files of an upload, then its row; raise StoreError if there is not enough space."""
        folder = self._folder / ingest.id
        try:
            folder.mkdir(parents=True)
            for name, file in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with (folder / name).open("wb") as out:
                    shutil.copyfileobj(file, out)
            with transaction(self._engine, write=True) as connection:
                connection.execute(insert(ingests).values(_row(ingest)))
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            problem = f"The files cannot be stored, none was accepted: {error.strerror}."
            raise errors.StoreError(f"{problem} Send them again when the server has enough free space.") from error
        except errors.StoreError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @in_thread
    def find(self, id: str) -> Ingest | None:
        """Return an upload of any owner."""
        return next(iter(self._select(ingests.c.id == id)), None)

    @in_thread
    def unfinished(self) -> list[Ingest]:
        """Return the uploads that have not ended and whose files are here, in the order in which they were sent."""
        return [ingest for ingest in self._select(_IS_UNFINISHED) if (self._folder / ingest.id).is_dir()]

    @in_thread
    def mark_stopping(self, id: str) -> None:
        """Store that the next start must not ingest the rest; do nothing if the upload has ended."""
        with transaction(self._engine, write=True) as connection:
            connection.execute(update(ingests).where(ingests.c.id == id, _IS_UNFINISHED).values(status="stopping"))

    @in_thread
    def finish(self, ingest: Ingest) -> None:
        """Store the end of an upload and remove its files."""
        with transaction(self._engine, write=True) as connection:
            connection.execute(update(ingests).where(ingests.c.id == ingest.id).values(_row(ingest)))
        for name, path in zip(ingest.files, self._paths(ingest), strict=True):
            if not (self._folder / ingest.id / name).exists():  # before it moves, one of this name is of another upload
                path.unlink(missing_ok=True)
                with suppress(OSError):  # it contains other files, or is gone
                    os.removedirs(path.parent)
        shutil.rmtree(self._folder / ingest.id, ignore_errors=True)

    def folder_of(self, owner: str) -> Path:
        """Return the folder of an owner's files while they are ingested; a document's source is a path in it."""
        return self._folder / f"{_OWNERS}{sha256(owner.encode()).hexdigest()[:16]}"

    @in_thread
    def place(self, ingest: Ingest) -> list[Path]:
        """Move files to their owner's folder; after a kill some of them are there already."""
        for name, path in zip(ingest.files, self._paths(ingest), strict=True):
            if (waiting := self._folder / ingest.id / name).exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                waiting.replace(path)
        return self._paths(ingest)

    @in_thread
    def remove_orphans(self) -> None:
        """Remove files without a row, which a kill may leave."""
        unfinished = self._select(_IS_UNFINISHED)
        needed = {self._folder / ingest.id for ingest in unfinished}
        for ingest in unfinished:
            needed |= {self.folder_of(ingest.owner) / Path(name).parts[0] for name in ingest.files}
        folders = [path for path in self._folder.glob("*") if not path.name.startswith(_OWNERS)]
        for path in [*folders, *self._folder.glob(f"{_OWNERS}*/*")]:
            with suppress(FileNotFoundError):  # another server may remove it too
                if path in needed or time.time() - path.stat().st_mtime < HOUR:
                    continue
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()

    def _paths(self, ingest: Ingest) -> list[Path]:
        return [self.folder_of(ingest.owner) / name for name in ingest.files]

    def _select(self, condition: ColumnElement[bool]) -> list[Ingest]:
        with transaction(self._engine) as connection:
            rows = connection.execute(select(ingests).where(condition).order_by(ingests.c.at)).all()
        return [
            Ingest.model_validate_json(row.progress).model_copy(update={"owner": row.owner, "status": row.status})
            for row in rows
        ]


def _row(ingest: Ingest) -> dict[str, Any]:
    about = {name: getattr(ingest, name) for name in ("id", "owner", "status", "at")}
    return {**about, "progress": ingest.model_dump_json()}


class IngestionWorker:
    """Accepts uploads and ingests those of each owner in order; call `recover()` first."""

    def __init__(self, tenants: Tenants, uploads: Uploads, telemetry: Telemetry) -> None:
        self._tenants = tenants
        self._home_lock = tenants.store.home.lock
        self.uploads = uploads
        self._pending: dict[str, Ingest] = {}
        """The uploads that have not ended, with progress that is not stored."""
        self._ending: set[str] = set()
        """Those whose end is being stored."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The task that ingests the uploads of an owner."""
        self._telemetry = telemetry
        telemetry.ingests_waiting.set_function(lambda: len(self._pending))
        self._is_closed = False

    async def add(self, owner: str, files: Mapping[str, BinaryIO]) -> Ingest:
        """Store files by name and queue them; a kill loses none of them.

        Raises:
            StoreError: they cannot be stored; none of them was accepted.
        """
        total = sum(name.removesuffix(SIDECAR) not in files or not name.endswith(SIDECAR) for name in files)
        ingest = Ingest(id=uuid4().hex[:12], owner=owner, files=tuple(files), total=total, at=now())
        await self.uploads.add(ingest, files)
        self._enqueue(ingest)
        return ingest

    async def get(self, owner: str, id: str) -> Ingest:
        """Return an owner's ingest; raise UnknownName if it does not exist."""
        ingest = self._pending.get(id) or await self.uploads.find(id)
        if ingest is None or ingest.owner != owner:
            raise errors.UnknownName("ingest", id, [])
        return ingest

    async def stop(self, owner: str, id: str) -> Ingest:
        """Ingest no further document of an upload, also after a restart; do nothing if it has ended."""
        ingest = await self.get(owner, id)
        if id not in self._pending or id in self._ending:
            return ingest
        if ingest.status == "waiting":
            await self._end(id, "stopped")
        else:
            self._pending[id] = ingest.model_copy(update={"status": "stopping"})
            await self.uploads.mark_stopping(id)
        return await self.get(owner, id)

    async def follow(self, ingest: Ingest) -> AsyncIterator[Ingest]:
        """Yield an ingest now and after its changes, to its end.

        If another server ingests it, the number of read files is stored at the end only.
        """
        previous = None
        while not self._is_closed:
            ingest = await self.get(ingest.owner, ingest.id)
            if ingest != previous:
                yield ingest
            if ingest.done:
                return
            previous = ingest
            await asyncio.sleep(LOOK_SECONDS)

    async def recover(self) -> None:
        """Queue the uploads of the previous server, before new ones are accepted; raise StoreError."""
        await self.uploads.remove_orphans()
        for ingest in await self.uploads.unfinished():
            self._enqueue(ingest)

    async def close(self) -> None:
        """End all streams of followers, and interrupt the uploads; the next start ingests them."""
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ingest_all(self, owner: str) -> None:
        """Ingest the uploads of an owner in order; those of others wait for the lock of the home."""
        while id := next((ingest.id for ingest in self._pending.values() if ingest.owner == owner), ""):
            pause = FIRST_PAUSE
            while not await self._attempt(id):
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        del self._tasks[owner]

    async def _attempt(self, id: str) -> bool:
        """Ingest an upload; if that fails, end it, or return False: another attempt may succeed."""
        (error,) = await asyncio.gather(self._ingest(id), return_exceptions=True)
        ingest = self._pending.get(id)
        if error is None or ingest is None or id in self._ending:
            return True
        unexpected = None if isinstance(error, errors.SleuthError) else error
        _log.error("ingest %s failed: %s", id, error, exc_info=unexpected)
        is_stopping = ingest.status == "stopping"
        self._pending[id] = _with_error(ingest, error)
        if is_stopping or not _is_temporary(error):
            with suppress(errors.StoreError):  # the next attempt fails the same way
                await self._end_with_retry(id, "stopped" if is_stopping else "failed")
                return True
        return False

    async def _ingest(self, id: str) -> None:
        """Ingest an upload from its beginning and store its end; documents that are stored already are skipped."""
        owner = self._pending[id].owner
        collection, folder = await self._tenants.collection(owner), self.uploads.folder_of(owner)

        def show_wait(error: Exception) -> None:
            if id in self._pending:
                self._pending[id] = _with_error(self._pending[id], error)

        async with self._home_lock.hold("exclusive", wait=math.inf, on_wait=show_wait):
            if id not in self._pending or id in self._ending:
                return
            status = "stopping" if self._is_stopping(id) else "reading"
            begun = self._pending[id].model_copy(update={"status": status, "read": 0, "failed": ()})
            self._pending[id] = begun
            stored = await self.uploads.find(id)
            if stored and stored.done:  # by another server with this SLEUTH_HOME
                self._forget(stored)
                return

            def show(progress: IngestProgress) -> None:
                self._pending[id] = _after(self._pending[id], progress, folder)

            paths = await self.uploads.place(begun)
            async with Ingestion(collection) as ingestion:
                await ingestion.run(paths, on_progress=show, stopped=lambda: self._is_stopping(id))
            await collection.catch_up()
            is_cut_short = self._is_stopping(id) and self._pending[id].read < self._pending[id].total
            # Under the home lock: another server with this SLEUTH_HOME may wait to ingest the same upload.
            await self._end_with_retry(id, "stopped" if is_cut_short else "done")

    def _is_stopping(self, id: str) -> bool:
        return self._pending[id].status == "stopping"

    async def _end_with_retry(self, id: str, status: Status) -> None:
        await retry_until_stored(partial(self._end, id, status), f"The end of ingest {id}")

    async def _end(self, id: str, status: Status) -> None:
        """Store the end of an ingest and remove its files."""
        ingest = self._pending[id].model_copy(update={"status": status})
        self._ending.add(id)
        try:
            await self.uploads.finish(ingest)
        finally:
            self._ending.remove(id)
        self._forget(ingest)

    def _forget(self, ingest: Ingest) -> None:
        """Count an upload that has ended; its row is stored."""
        del self._pending[ingest.id]
        failed = sum(bool(failure.source) for failure in ingest.failed)
        seconds = (datetime.now(UTC) - datetime.fromisoformat(ingest.at)).total_seconds()
        self._telemetry.count_ingest(ingest.status, seconds, read=ingest.read, failed=failed)

    def _enqueue(self, ingest: Ingest) -> None:
        self._pending[ingest.id] = ingest
        if ingest.owner not in self._tasks and not self._is_closed:
            self._tasks[ingest.owner] = asyncio.create_task(self._ingest_all(ingest.owner))


def _after(ingest: Ingest, progress: IngestProgress, folder: Path) -> Ingest:
    """Return the ingest after a report of progress; files are named by their path in the owner's folder."""
    failed, outcomes = ingest.failed, dict(ingest.outcomes)
    if progress.failure:
        source = str(progress.failure.path.relative_to(folder))
        failed = (*failed, Failure(source=source, problem=str(progress.failure).replace(f"{folder}/", "")))
    for path, difference in progress.differences.items():
        if difference != "unchanged":  # after a retry it means: stored by this upload
            outcomes[str(Path(path).relative_to(folder))] = "replaced" if difference == "updated" else "added"
        else:
            outcomes.setdefault(str(Path(path).relative_to(folder)), "unchanged")
    counts = {"read": progress.files, "total": progress.total}
    return ingest.model_copy(update={**counts, "failed": failed, "outcomes": outcomes})


def _is_temporary(error: BaseException) -> bool:
    """Return whether a retry may succeed without the files being sent again."""
    can_pass = isinstance(error, errors.SleuthError | OSError) or is_database_error(error)
    return can_pass and not (isinstance(error, PERMANENT_ERRORS) or is_refused(error))


def _with_error(ingest: Ingest, error: BaseException) -> Ingest:
    """Return the ingest with the error of the whole upload; it replaces an earlier one. Unless it stops, it waits."""
    problem = STORE_AWAY if isinstance(error, OSError) else describe_failure(error)[0]
    of_files = (failure for failure in ingest.failed if failure.source)
    status: Status = "stopping" if ingest.status == "stopping" else "waiting"
    return ingest.model_copy(update={"status": status, "failed": (*of_files, Failure(source="", problem=problem))})
