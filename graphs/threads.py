"""The list of runs: one row per thread, beside its checkpoints."""

import asyncio
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from sqlalchemy import (
    Column,
    ColumnElement,
    Index,
    MetaData,
    Select,
    String,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.engine import Engine
from sqlalchemy.sql.dml import UpdateBase

from sleuth.tools.database import make_tables
from sleuth.tools.errors import UnknownName

LONGEST_NAME = 100
NAME = rf"^[\w.@:-]{{1,{LONGEST_NAME}}}$"
"""What a thread may be called: it is part of addresses, and of other threads' names."""

ThreadStatus = Literal["new", "running", "interrupted", "failed", "done"]

metadata = MetaData()
threads = Table(
    "sleuth_threads",
    metadata,
    Column("id", String(LONGEST_NAME), primary_key=True),
    Column("owner", String(100), nullable=False),
    Column("method", String(40), nullable=False),
    Column("question", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("status", String(20), nullable=False),
    Column("problem", Text, nullable=False),
    Column("parent", String(LONGEST_NAME), nullable=False),
    Column("parent_checkpoint", String(100), nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("updated_at", String(40), nullable=False),
    # Of many runs the latest are listed, and the hops of one are found, without looking at all of them.
    Index("sleuth_threads_newest", "owner", "updated_at"),
    Index("sleuth_threads_parent", "owner", "parent"),
)


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One run: its question and method, the options it was started with, and where it stands."""

    id: str
    owner: str
    method: str
    question: str
    options: dict[str, Any] = field(default_factory=dict)
    status: ThreadStatus = "new"
    problem: str = ""
    parent: str = ""
    parent_checkpoint: str = ""
    created_at: str = ""
    updated_at: str = ""

    @property
    def part_of(self) -> str:
        """The run that this one is a hop of; empty for a run of its own, a fork into another method included."""
        return self.parent if self.hop else ""

    @property
    def hop(self) -> int:
        """Which hop of that run it is, from 1; otherwise 0."""
        return int(self.options.get("hop", 0))

    def to_json(self) -> dict[str, Any]:
        """The JSON form that `runs list` prints."""
        return {**asdict(self), "part_of": self.part_of}


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The run and checkpoint that a thread comes from, and as which hop of that run; 0: it is a fork."""

    parent: str
    checkpoint: str
    hop: int = 0


class Threads:
    """The threads of one owner."""

    def __init__(self, engine: Engine, owner: str) -> None:
        self.engine = engine
        self.owner = owner
        make_tables(engine, metadata)
        for index in threads.indexes:  # an older release made the table without
            index.create(engine, checkfirst=True)

    async def add(self, thread: Thread) -> None:
        """Writes a new row."""
        row = {**asdict(thread), "options": json.dumps(thread.options)}
        await asyncio.to_thread(self._write, insert(threads).values(row))

    async def get(self, id: str) -> Thread:
        """One thread; raises UnknownName with the nearest id."""
        found = await self.find(id)
        if found is None:
            known = [thread.id for thread in await self.newest()]
            raise UnknownName("thread", id, known, "`sleuth runs list` shows them.")
        return found

    async def find(self, id: str) -> Thread | None:
        """The same, or None."""
        rows = await asyncio.to_thread(self._read, select(threads).where(threads.c.id == id, self._mine()))
        return rows[0] if rows else None

    async def exists(self, id: str) -> bool:
        """Whether the id is taken, by whomever."""
        return bool(await asyncio.to_thread(self._read, select(threads).where(threads.c.id == id)))

    async def newest(self, *, limit: int | None = None, before: str | None = None) -> list[Thread]:
        """Threads, the latest first; `before` keeps those last touched before that time (ISO 8601, UTC)."""
        wanted = select(threads).where(self._mine()).order_by(threads.c.updated_at.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(threads.c.updated_at < before)
        return await asyncio.to_thread(self._read, wanted)

    async def everyones(self) -> list[Thread]:
        """The threads of all owners: what is shared between them must not be pruned for one."""
        return await asyncio.to_thread(self._read, select(threads))

    async def mark(self, id: str, status: ThreadStatus, *, at: str, problem: str = "") -> None:
        """Records where a run stands."""
        values = {"status": status, "problem": problem, "updated_at": at}
        await asyncio.to_thread(self._write, update(threads).where(threads.c.id == id).values(values))

    async def hops_of(self, id: str) -> list[Thread]:
        """The threads of a run's hops, the first one first; those of all its branches."""
        found = await asyncio.to_thread(self._read, select(threads).where(threads.c.parent == id, self._mine()))
        return sorted((thread for thread in found if thread.hop), key=lambda thread: (thread.hop, thread.created_at))

    async def set_options(self, id: str, options: dict[str, Any]) -> None:
        """Records what a resumed run is allowed now."""
        await asyncio.to_thread(
            self._write, update(threads).where(threads.c.id == id).values(options=json.dumps(options))
        )

    async def remove(self, id: str) -> None:
        """Removes the row."""
        await asyncio.to_thread(self._write, delete(threads).where(threads.c.id == id, self._mine()))

    def _mine(self) -> ColumnElement[bool]:
        return threads.c.owner == self.owner

    def _read(self, query: Select[Any]) -> list[Thread]:
        with self.engine.connect() as connection:
            rows = [Thread(**row._mapping) for row in connection.execute(query)]
        return [replace(row, options=json.loads(str(row.options))) for row in rows]

    def _write(self, statement: UpdateBase) -> None:
        with self.engine.execution_options(sleuth_write=True).begin() as connection:
            connection.execute(statement)
