"""Uploaded files on their way into a collection: one batch after the other, whoever sent them.

Files wait in a folder of their upload's own. When it is their turn they move to their owner's folder, so that a file
that is sent again under the same name takes the place of the one before; afterwards the catalogue has their text.
"""

import asyncio
import json
import logging
import math
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Literal
from uuid import uuid4

from sqlalchemy import Column, Integer, MetaData, String, Table, Text, insert, select, update
from sqlalchemy.engine import Engine

from sleuth.graphs.ingest import IngestProgress, read_in
from sleuth.studio.serve.door import Door
from sleuth.studio.serve.storing import until_stored
from sleuth.studio.serve.tenants import Tenants
from sleuth.tools.database import transaction
from sleuth.tools.documents import now
from sleuth.tools.errors import SleuthError, StoreError, UnknownName

_log = logging.getLogger(__name__)

Status = Literal["waiting", "reading", "stopping", "stopped", "done", "failed"]
ENDS: tuple[Status, ...] = ("stopped", "done", "failed")

metadata = MetaData()
ingests = Table(
    "sleuth_serve_ingests",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner", String(100), nullable=False),
    Column("files", Text, nullable=False),
    Column("status", String(10), nullable=False),
    Column("read", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("failed", Text, nullable=False),
    Column("at", String(40), nullable=False),
)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A file that could not be read; where `source` is empty, none could."""

    source: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class Ingest:
    """One upload, and how far it has been read."""

    id: str
    owner: str
    files: tuple[str, ...]
    status: Status = "waiting"
    read: int = 0
    total: int = 0
    failed: tuple[Failure, ...] = ()
    at: str = ""

    @property
    def done(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in ENDS

    def to_json(self) -> dict[str, Any]:
        """As its owner sees it."""
        return {**asdict(self), "done": self.done}


@dataclass(kw_only=True)
class _Waiting:
    """An ingest, and those who follow it; `begun` once something of it may have been read, `ended` as it ends."""

    ingest: Ingest
    begun: bool
    ended: bool = False
    bells: set[asyncio.Event] = field(default_factory=set)

    def stopping(self) -> bool:
        return self.ingest.status == "stopping"

    def tell(self, ingest: Ingest) -> None:
        self.ingest = ingest
        for bell in self.bells:
            bell.set()


class Ingests:
    """Takes uploads and reads them in, in their order; `run()` has to be under way."""

    def __init__(self, tenants: Tenants, door: Door, engine: Engine) -> None:
        """Blocks while it makes its table."""
        self._tenants = tenants
        self._door = door
        self._engine = engine
        self._folder = tenants.settings.home / "uploads"
        self._waiting: dict[str, _Waiting] = {}
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        metadata.create_all(engine)

    async def add(self, owner: str, files: Mapping[str, BinaryIO]) -> Ingest:
        """Keeps files, by their names, and reads them in when it is their turn; a kill loses none of them."""
        ingest = Ingest(id=uuid4().hex[:12], owner=owner, files=tuple(files), total=len(files), at=now())
        await asyncio.to_thread(_save, self._folder / ingest.id, files)
        await asyncio.to_thread(self._insert, ingest)
        self._enter(ingest, begun=False)
        return ingest

    async def get(self, owner: str, id: str) -> Ingest:
        """An owner's ingest; raises UnknownName where there is none."""
        waiting = self._waiting.get(id)
        found = waiting.ingest if waiting else await asyncio.to_thread(self._find, id)
        if found is None or found.owner != owner:
            raise UnknownName("ingest", id, [])
        return found

    async def stop(self, owner: str, id: str) -> Ingest:
        """Reads no further document of an ingest, whatever happens from here on; one that has ended is let be."""
        ingest, waiting = await self.get(owner, id), self._waiting.get(id)
        if waiting is None or waiting.ended:
            return ingest
        if waiting.begun:
            waiting.tell(replace(waiting.ingest, status="stopping"))
            await asyncio.to_thread(self._mark_stopping, id)
        else:
            await self._end(waiting, "stopped")
        return waiting.ingest

    async def follow(self, ingest: Ingest) -> AsyncIterator[Ingest]:
        """How an ingest stands, now and after each change, to its end."""
        waiting, bell = self._waiting.get(ingest.id), asyncio.Event()
        if waiting is None:  # it may have ended since it was looked up
            ended = await asyncio.to_thread(self._find, ingest.id)
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

    async def run(self) -> None:
        """Reads in what waits, first of all what the last server left, until it is cancelled."""
        for ingest in await asyncio.to_thread(self._left):
            self._enter(ingest, begun=True)
        while True:
            waiting = self._waiting.get(await self._queue.get())
            if waiting is None:  # stopped before its turn
                continue
            status: Status
            (ended,) = await asyncio.gather(self._read(waiting), return_exceptions=True)
            if waiting.ended:  # stopped while it waited for its turn
                continue
            if isinstance(ended, BaseException):
                waiting.ingest, status = _failed(waiting.ingest, ended), "failed"
            else:
                cut = waiting.stopping() and waiting.ingest.read < waiting.ingest.total
                status = "stopped" if cut else "done"
            await until_stored(partial(self._end, waiting, status), f"The end of ingest {waiting.ingest.id}")

    def close(self) -> None:
        """Lets go of those who follow."""
        left, self._waiting = self._waiting, {}
        for waiting in left.values():
            waiting.tell(waiting.ingest)

    async def _end(self, waiting: _Waiting, status: Status) -> None:
        """Nothing more will happen to an ingest: its files go, and then those who follow it are told."""
        waiting.ended = True
        ingest = replace(waiting.ingest, status=status)
        try:
            await asyncio.to_thread(self._finish, ingest, placed=waiting.begun)
        except StoreError:
            waiting.ended = False
            raise
        self._waiting.pop(ingest.id, None)
        waiting.tell(ingest)

    def _enter(self, ingest: Ingest, *, begun: bool) -> None:
        if ingest.id in self._waiting:  # a new one, which was also found among those that the last server left
            return
        self._waiting[ingest.id] = _Waiting(ingest=ingest, begun=begun)
        self._queue.put_nowait(ingest.id)

    async def _read(self, waiting: _Waiting) -> None:
        ingest, settings = waiting.ingest, self._tenants.settings_of(waiting.ingest.owner)
        library = await self._tenants.library(ingest.owner)
        async with self._door.open("exclusive", patience=math.inf):
            if waiting.ended:
                return
            waiting.begun = True
            paths = await asyncio.to_thread(self._place, ingest)

            def show(progress: IngestProgress) -> None:
                waiting.tell(_after(waiting.ingest, progress, paths))

            await read_in(paths, settings=settings, library=library, on_progress=show, stopped=waiting.stopping)
            await library.catch_up()

    def folder_of(self, owner: str) -> Path:
        """Where an owner's files are while they are read; a document's source is a path in it."""
        return self._folder / f"of-{sha256(owner.encode()).hexdigest()[:16]}"

    def _place(self, ingest: Ingest) -> list[Path]:
        """Moves files where they are read; after a kill some of them are there already."""
        folder = self.folder_of(ingest.owner)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ingest.files:
            if (kept := self._folder / ingest.id / name).exists():
                kept.replace(folder / name)
        return [folder / name for name in ingest.files]

    def _insert(self, ingest: Ingest) -> None:
        with transaction(self._engine, write=True) as connection:
            connection.execute(insert(ingests).values(_row(ingest)))

    def _mark_stopping(self, id: str) -> None:
        """Writes down that the next start must not read on; an end that was written meanwhile stays."""
        going_on = (ingests.c.id == id) & ingests.c.status.not_in(ENDS)
        with transaction(self._engine, write=True) as connection:
            connection.execute(update(ingests).where(going_on).values(status="stopping"))

    def _finish(self, ingest: Ingest, *, placed: bool) -> None:
        with transaction(self._engine, write=True) as connection:
            connection.execute(update(ingests).where(ingests.c.id == ingest.id).values(_row(ingest)))
        shutil.rmtree(self._folder / ingest.id, ignore_errors=True)
        for name in ingest.files if placed else ():  # until then a file of that name there is another ingest's
            (self.folder_of(ingest.owner) / name).unlink(missing_ok=True)

    def _find(self, id: str) -> Ingest | None:
        found = self._select(select(ingests).where(ingests.c.id == id))
        return found[0] if found else None

    def _left(self) -> list[Ingest]:
        wanted = select(ingests).where(ingests.c.status.not_in(ENDS)).order_by(ingests.c.at)
        return self._select(wanted)

    def _select(self, query: Any) -> list[Ingest]:  # noqa: ANN401 - a select
        with transaction(self._engine) as connection:
            rows = [dict(row._mapping) for row in connection.execute(query)]
        for row in rows:
            row["failed"] = tuple(Failure(**each) for each in json.loads(row["failed"]))
            row["files"] = tuple(json.loads(row["files"]))
        return [Ingest(**row) for row in rows]


def _row(ingest: Ingest) -> dict[str, Any]:
    row = asdict(ingest)
    return {**row, "files": json.dumps(row["files"]), "failed": json.dumps(row["failed"])}


def _save(folder: Path, files: Mapping[str, BinaryIO]) -> None:
    folder.mkdir(parents=True)
    for name, file in files.items():
        with (folder / name).open("wb") as out:
            shutil.copyfileobj(file, out)


def _after(ingest: Ingest, progress: IngestProgress, paths: Sequence[Path]) -> Ingest:
    failed = ingest.failed
    if progress.failure:
        problem = progress.failure.replace(f"{paths[0].parent}/", "")
        source = next((path.name for path in paths if path.name in problem), "")
        failed = (*failed, Failure(source=source, problem=problem))
    status: Status = "stopping" if ingest.status == "stopping" else "reading"
    return replace(ingest, status=status, read=progress.files, failed=failed)


def _failed(ingest: Ingest, error: BaseException) -> Ingest:
    if isinstance(error, SleuthError):
        problem = str(error)
    else:
        _log.error("ingest %s ended by a fault of ours", ingest.id, exc_info=error)
        problem = "The server failed; its log says why."
    return replace(ingest, failed=(*ingest.failed, Failure(source="", problem=problem)))
