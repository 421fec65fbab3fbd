"""The list of runs: one row per thread, next to its checkpoints."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Final, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from sqlalchemy import (
    Column,
    ColumnElement,
    Index,
    MetaData,
    Row,
    Select,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    not_,
    select,
    update,
)
from sqlalchemy.engine import Engine
from sqlalchemy.sql.dml import UpdateBase
from typing_extensions import TypedDict

from sleuth.graphs.persistence.thread_locks import ThreadLocks, check_token
from sleuth.tools.errors import StoreDamaged, UnknownName
from sleuth.tools.storage import make_tables
from sleuth.tools.storage.id_prefix import MAX_CANDIDATES, complete_id

LONGEST_NAME = 100
NAME = rf"^[\w.@:-]{{1,{LONGEST_NAME}}}$"
"""Pattern of a thread's name, which is part of addresses and of other threads' names."""

ThreadState = Literal["queued", "running", "waiting", "stopped", "interrupted", "failed", "done"]
"""The state of a run.

queued: stored, not begun. running: a process holds its lock. waiting: for a person's reply. stopped: by a person.
interrupted: its process was killed, lost or shut down. failed: by an error. done: it has an answer.
"""

ThreadStatus = Literal["new", "running", "interrupted", "failed", "done"]
"""The names of states before `ThreadState`. Deprecated."""

OLD_NAMES: Final[dict[ThreadState, ThreadStatus]] = {
    "queued": "new",
    "running": "running",
    "waiting": "done",
    "stopped": "interrupted",
    "interrupted": "interrupted",
    "failed": "failed",
    "done": "done",
}

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
    # The latest of many runs are listed, and the sub-runs of one are found, without reading all of them.
    Index("sleuth_threads_newest", "owner", "updated_at"),
    Index("sleuth_threads_parent", "owner", "parent"),
)

_IS_SUBRUN = threads.c.options.like('%"hop": %')
"""Options are JSON, in which quotes inside of texts are escaped: only a sub-run has such a key."""


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One run: its question and method, the options it was started with, and its state."""

    id: str
    owner: str
    method: str
    question: str
    options: dict[str, Any] = field(default_factory=dict)
    state: ThreadState = "queued"
    problem: str = ""
    parent: str = ""
    parent_checkpoint: str = ""
    created_at: str = ""
    updated_at: str = ""

    @property
    def status(self) -> ThreadStatus:
        """Return the state by its old name. Deprecated: use `state`."""
        return OLD_NAMES[self.state]

    @property
    def part_of(self) -> str:
        """Return the run that this one is a sub-run of; empty for any other run, also for a fork."""
        return self.parent if self.hop else ""

    @property
    def hop(self) -> int:
        """Return the number of this sub-run in its outer run, from 1; 0 for any other run."""
        return int(self.options.get("hop", 0))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `runs list` prints."""
        return {**asdict(self), "status": self.status, "part_of": self.part_of}


class DamagedThread(Thread):
    """A run whose row cannot be read; `problem` names the fault, and `options` has the archived texts that it names."""


class _Options(TypedDict, total=False):
    """The options of a run that code relies on."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    values: dict[str, Any]
    profile: str
    budget: dict[str, float | None]
    hop: int
    pages: dict[str, Any]
    turn: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The run and checkpoint that a thread comes from, and its number as a sub-run of that run; 0 for a fork."""

    parent: str
    checkpoint: str
    hop: int = 0


ADVICE = "Put a backup of the runs in place, or remove this run."


@cache
def _checks() -> tuple[TypeAdapter[Thread], TypeAdapter[_Options]]:
    return TypeAdapter(Thread), TypeAdapter(_Options)


class Threads:
    """The threads of one owner.

    A thread with the state running whose lock nobody holds is read as interrupted: its process ended without
    recording an end.
    """

    def __init__(self, engine: Engine, owner: str, locks: ThreadLocks) -> None:
        self.engine = engine
        self.owner = owner
        self._locks = locks
        make_tables(engine, metadata)
        for index in threads.indexes:  # an older release created the table without it
            index.create(engine, checkfirst=True)

    async def add(self, thread: Thread) -> None:
        """Write a new row; raise ThreadBusy for a sub-run of a run that another process has taken."""
        row = {**asdict(thread), "status": thread.state, "options": json.dumps(thread.options)}
        del row["state"]
        await self._update(thread.part_of, insert(threads).values(row))

    async def get(self, id: str) -> Thread:
        """Return a thread; raise UnknownName with the nearest id, StoreDamaged if its row cannot be read."""
        found = await self.find(id)
        if found is None:
            known = [thread.id for thread in await self.list_newest()]
            raise UnknownName("thread", id, known, "`sleuth runs list` shows them.")
        return found

    async def find(self, id: str) -> Thread | None:
        """Return a thread, or None; raise StoreDamaged if its row cannot be read."""
        rows = await self._find(select(threads).where(threads.c.id == id, self._mine()))
        if rows and isinstance(rows[0], DamagedThread):
            raise StoreDamaged(rows[0].problem, thread=id)
        return rows[0] if rows else None

    async def complete(self, prefix: str) -> str:
        """Return the id of the thread that it names or begins; the sub-runs of a thread count as the thread.

        Raises:
            UnknownName: no thread has it, with the nearest id.
            UsageError: several threads begin with it.
        """
        begun = select(threads.c.id).where(self._mine(), threads.c.id.startswith(prefix, autoescape=True))
        ids = await asyncio.to_thread(self._read_ids, begun.order_by(threads.c.id).limit(MAX_CANDIDATES))
        return complete_id("thread", prefix, ids) or (await self.get(prefix)).id

    async def is_unchanged(self, thread: Thread) -> bool:
        """Return whether a thread is as it was listed, apart from the state that its lock decides."""
        here = select(threads).where(threads.c.id == thread.id, self._mine())
        return [replace(row, state=thread.state) for row in await asyncio.to_thread(self._read, here)] == [thread]

    async def exists(self, id: str) -> bool:
        """Return whether the id is used, by any owner."""
        return bool(await asyncio.to_thread(self._read, select(threads).where(threads.c.id == id)))

    async def list_newest(
        self, *, limit: int | None = None, before: str | None = None, with_subruns: bool = True
    ) -> list[Thread]:
        """Return threads, the latest first.

        Args:
            limit: the most threads; None for all.
            before: only those last changed before this time (ISO 8601, UTC).
            with_subruns: also sub-runs.
        """
        wanted = select(threads).where(self._mine()).order_by(threads.c.updated_at.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(threads.c.updated_at < before)
        if not with_subruns:
            wanted = wanted.where(not_(_IS_SUBRUN))
        return await self._find(wanted)

    async def count_subruns(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of sub-runs of threads that have some."""
        of_them = threads.c.parent.in_(ids), self._mine(), _IS_SUBRUN
        counted = select(threads.c.parent, func.count()).where(*of_them).group_by(threads.c.parent)

        def read() -> dict[str, int]:
            with self.engine.connect() as connection:
                return {str(parent): int(number) for parent, number in connection.execute(counted)}

        return await asyncio.to_thread(read)

    async def list_all_owners(self) -> list[Thread]:
        """Return the threads of all owners: pruning for one must keep what others share."""
        return await self._find(select(threads))

    async def set_state(self, id: str, state: ThreadState, *, at: str, problem: str = "") -> None:
        """Record the state of a run. A cancellation is raised after the row is written, never before.

        Raises:
            ThreadBusy: another process has taken the run.
        """
        values = {"status": state, "problem": problem, "updated_at": at}
        await self._update(id, update(threads).where(threads.c.id == id).values(values))

    async def mark_stopped(self, id: str, *, at: str) -> None:
        """Record that a person stopped a run, unless it has ended, failed or been resumed."""
        unfinished = threads.c.status.in_(("new", "queued", "interrupted"))
        statement = update(threads).where(threads.c.id == id, unfinished)
        await self._update(id, statement.values(status="stopped", updated_at=at))

    async def subruns_of(self, id: str) -> list[Thread]:
        """Return the sub-runs of a run and of all its branches, the first one first."""
        found = await self._find(select(threads).where(threads.c.parent == id, self._mine()))
        return sorted((thread for thread in found if thread.hop), key=lambda thread: (thread.hop, thread.created_at))

    async def set_options(self, id: str, options: dict[str, Any]) -> None:
        """Replace the options of a run."""
        await self._update(id, update(threads).where(threads.c.id == id).values(options=json.dumps(options)))

    async def remove(self, id: str) -> None:
        """Delete the row."""
        await self._update(id, delete(threads).where(threads.c.id == id, self._mine()))

    def _mine(self) -> ColumnElement[bool]:
        return threads.c.owner == self.owner

    async def _find(self, query: Select[Any]) -> list[Thread]:
        """Read rows, and decide which of those with the state running are interrupted."""
        found = await asyncio.to_thread(self._read, query)
        running = {thread.id for thread in found if thread.state == "running"}
        lost = running - await self._locks.held(running) if running else set()
        if not lost:
            return found
        # A run that has ended since its row was read holds no lock either: only an unchanged row is interrupted.
        again = await asyncio.to_thread(self._read, select(threads).where(threads.c.id.in_(lost)))
        latest = {thread.id: thread for thread in [*found, *again]}
        interrupted = {each.id for each in found if each.id in lost and latest[each.id] == each}
        return [replace(each, state="interrupted") if each.id in interrupted else latest[each.id] for each in found]

    def _read(self, query: Select[Any]) -> list[Thread]:
        with self.engine.connect() as connection:
            return [_thread(row) for row in connection.execute(query)]

    def _read_ids(self, query: Select[tuple[str]]) -> list[str]:
        with self.engine.connect() as connection:
            return list(connection.scalars(query))

    async def _update(self, fenced: str, statement: UpdateBase) -> None:
        """Execute a statement to its end; a cancellation is raised after it."""
        task, cancelled = asyncio.ensure_future(asyncio.to_thread(self._write, statement, fenced)), None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        task.result()

    def _write(self, statement: UpdateBase, fenced: str) -> None:
        with self.engine.execution_options(sleuth_write=True).begin() as connection:
            check_token(connection, fenced, self._locks.token(fenced))
            connection.execute(statement)


def _thread(row: Row[Any]) -> Thread:
    """Return a row's thread, or what is left of it if a cell is damaged: one such row must not hide the others.

    Old names of states are read as the new ones.
    """
    values = dict(row._mapping)
    status = values.pop("status")
    try:
        options = json.loads(values["options"])
        thread, stored = _checks()
        stored.validate_python(options)
        state = "queued" if status == "new" else status
        return thread.validate_python({**values, "state": state, "options": options})
    except ValidationError as error:
        fault = error.errors()[0]
        reason = f"{'.'.join(map(str, fault['loc'])) or 'options'}: {fault['msg'].lower()}"
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"options: {error}"
    kept: dict[str, Any] = {name: str(value) for name, value in values.items()}
    problem = (
        f"The row of run {kept['id']} is damaged ({reason}). Put a backup of the runs in place, or remove the run "
        f"with `sleuth runs delete {kept['id']}`."
    )
    named = {"texts": re.findall("[0-9a-f]{64}", kept["options"])}
    return DamagedThread(**{**kept, "options": named, "state": "failed", "problem": problem})
