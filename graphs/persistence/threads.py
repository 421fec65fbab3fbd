"""The list of runs: one row per thread, next to its checkpoints."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, insert, select, update
from sqlalchemy.engine import Engine

from sleuth.graphs.core.answer import Status
from sleuth.graphs.persistence.run_options import StoredOptions
from sleuth.graphs.persistence.thread_locks import ThreadLocks, check_token
from sleuth.graphs.persistence.thread_states import (
    OLD_NAMES,
    AverageCost,
    Outcome,
    RunResult,
    ThreadState,
    ThreadStatus,
    outcome_of,
)
from sleuth.graphs.persistence.thread_tables import (
    IS_SUBRUN,
    LONGEST_NAME,
    MAX_ANSWER,
    RunFilter,
    add_words,
    open_tables,
    remove_words,
    select_runs,
    threads,
)
from sleuth.tools.errors import StoreDamaged, UnknownName
from sleuth.tools.storage.id_prefix import MAX_CANDIDATES, complete_id

NAME = rf"^[\w.@:-]{{1,{LONGEST_NAME}}}$"
"""Pattern of a thread's name, which is part of addresses and of other threads' names."""


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One run: its question and method, the options it was started with, and its state."""

    id: str
    owner: str
    method: str
    question: str
    options: StoredOptions = field(default_factory=StoredOptions)
    state: ThreadState = "queued"
    problem: str = ""
    parent: str = ""
    parent_checkpoint: str = ""
    created_at: str = ""
    updated_at: str = ""
    verdict: Status | None = None
    answer: str | None = None
    weak: bool | None = None
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None

    @property
    def outcome(self) -> Outcome:
        """Return the state, of an interrupted run `stopped`, of a finished one the status of its answer."""
        return outcome_of(self.state, self.verdict)

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
        return self.options.hop

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `runs list` prints."""
        more = {"status": self.status, "part_of": self.part_of, "outcome": self.outcome}
        return {**asdict(self), "options": self.options.to_json(), **more}


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The run and checkpoint that a thread comes from, and its number as a sub-run of that run; 0 for a fork."""

    parent: str
    checkpoint: str
    hop: int = 0


@cache
def _check() -> TypeAdapter[Thread]:
    return TypeAdapter(Thread)


class Threads:
    """The threads of one owner.

    A thread with the state running whose lock nobody holds is read as interrupted: its process ended without
    recording an end.
    """

    def __init__(self, engine: Engine, owner: str, locks: ThreadLocks) -> None:
        self.engine = engine
        self.owner = owner
        self._locks = locks
        open_tables(engine)

    async def add(self, thread: Thread) -> None:
        """Write a new row; raise ThreadBusy for a sub-run of a run that another process has taken."""
        row = {**asdict(thread), "status": thread.state, "options": thread.options.dumps()}
        del row["state"]

        def write(connection: Connection) -> None:
            connection.execute(insert(threads).values({**row, "outcome": thread.outcome}))
            add_words(connection, thread.owner, thread.id, thread.question)

        await self._update(thread.part_of, write)

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
        wanted = RunFilter(before=before or "", with_subruns=with_subruns)
        return await self._find(select_runs(self.owner, wanted, limit))

    async def search(self, wanted: RunFilter, limit: int) -> list[Thread]:
        """Return the threads that match a filter, the latest first."""
        found = await self._find(select_runs(self.owner, wanted, limit))
        return [thread for thread in found if not wanted.outcomes or thread.outcome in wanted.outcomes]

    async def count_subruns(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of sub-runs of threads that have some."""
        of_them = threads.c.parent.in_(ids), self._mine(), IS_SUBRUN
        counted = select(threads.c.parent, func.count()).where(*of_them).group_by(threads.c.parent)

        def read() -> dict[str, int]:
            with self.engine.connect() as connection:
                return {str(parent): int(number) for parent, number in connection.execute(counted)}

        return await asyncio.to_thread(read)

    async def average_costs(self) -> dict[str, AverageCost]:
        """Return the average cost of finished runs, by method."""
        columns = threads.c
        averages = func.avg(columns.calls), func.avg(columns.tokens), func.avg(columns.seconds)
        query = select(columns.method, func.count(), *averages)
        query = query.where(self._mine(), columns.calls.is_not(None)).group_by(columns.method)

        def read() -> dict[str, AverageCost]:
            with self.engine.connect() as connection:
                return {row[0]: _average(*row[1:]) for row in connection.execute(query)}

        return await asyncio.to_thread(read)

    async def list_all_owners(self) -> list[Thread]:
        """Return the threads of all owners: pruning for one must keep what others share."""
        return await self._find(select(threads))

    async def owners(self) -> list[str]:
        """Return the names of all owners who have runs."""
        query = select(threads.c.owner).distinct().order_by(threads.c.owner)
        return await asyncio.to_thread(self._read_ids, query)

    async def set_state(
        self, id: str, state: ThreadState, *, at: str, problem: str = "", result: RunResult | None = None
    ) -> None:
        """Record the state of a run, and the result of one that has an answer.

        A cancellation is raised after the row is written, never before.

        Raises:
            ThreadBusy: another process has taken the run.
        """
        verdict = result.verdict if result else None
        values = {"status": state, "problem": problem, "updated_at": at, "outcome": outcome_of(state, verdict)}
        await self._set(id, {**values, **_columns(result)})

    async def set_result(self, id: str, result: RunResult) -> None:
        """Record the result of a run that an older release finished."""
        await self._set(id, {"outcome": result.verdict, **_columns(result)})

    async def _set(self, id: str, values: dict[str, Any]) -> None:
        def write(connection: Connection) -> None:
            connection.execute(update(threads).where(threads.c.id == id).values(values))
            if answer := values.get("answer"):
                add_words(connection, self.owner, id, answer)

        await self._update(id, write)

    async def mark_stopped(self, id: str, *, at: str) -> None:
        """Record that a person stopped a run, unless it has ended, failed or been resumed."""
        unfinished = threads.c.status.in_(("new", "queued", "interrupted"))
        statement = update(threads).where(threads.c.id == id, unfinished)
        values = {"status": "stopped", "outcome": "stopped", "updated_at": at}
        await self._update(id, lambda connection: connection.execute(statement.values(values)))

    async def subruns_of(self, id: str) -> list[Thread]:
        """Return the sub-runs of a run and of all its branches, the first one first."""
        found = await self._find(select(threads).where(threads.c.parent == id, self._mine()))
        return sorted((thread for thread in found if thread.hop), key=lambda thread: (thread.hop, thread.created_at))

    async def set_options(self, id: str, options: StoredOptions) -> None:
        """Replace the options of a run."""
        await self._set(id, {"options": options.dumps()})

    async def remove(self, id: str) -> None:
        """Delete the row."""

        def write(connection: Connection) -> None:
            if connection.execute(delete(threads).where(threads.c.id == id, self._mine())).rowcount:
                remove_words(connection, id)

        await self._update(id, write)

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

    async def _update(self, fenced: str, write: Callable[[Connection], object]) -> None:
        """Write to the end of a transaction; a cancellation is raised after it."""
        task, cancelled = asyncio.ensure_future(asyncio.to_thread(self._write, write, fenced)), None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        task.result()

    def _write(self, write: Callable[[Connection], object], fenced: str) -> None:
        with self.engine.execution_options(sleuth_write=True).begin() as connection:
            check_token(connection, fenced, self._locks.token(fenced))
            write(connection)


def _average(runs: int, calls: Any, tokens: Any, seconds: Any) -> AverageCost:  # noqa: ANN401 - Decimal in Postgres
    known = None if seconds is None else round(float(seconds), 3)
    return AverageCost(runs=runs, calls=round(float(calls), 1), tokens=round(float(tokens)), seconds=known)


def _columns(result: RunResult | None) -> dict[str, Any]:
    return {**asdict(result), "answer": result.answer[:MAX_ANSWER]} if result else {}


def _thread(row: Row[Any]) -> Thread:
    """Return a row's thread; old names of states are read as the new ones.

    Raises:
        StoreDamaged: a cell cannot be read.
    """
    values = dict(row._mapping)
    status = values.pop("status")
    values.pop("outcome")
    try:
        options = StoredOptions.model_validate_json(values["options"], strict=True)
        state = "queued" if status == "new" else status
        return _check().validate_python({**values, "state": state, "options": options})
    except ValidationError as error:
        fault = error.errors()[0]
        reason = f"{'.'.join(map(str, fault['loc'])) or 'options'}: {fault['msg'].lower()}"
        problem = f"The row of run {values['id']} is damaged ({reason})."
        raise StoreDamaged(problem, thread=str(values["id"]), advice="Put a backup of the runs in place.") from error
