"""The list of runs, a row per thread, in SQLite or Postgres."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, insert, select, update
from sqlalchemy.engine import Engine
from sqlalchemy.exc import IntegrityError

from sleuth.graphs.persistence.run_filter import ALL_RUNS, MAX_METADATA_OF_OWNER, RunFilter, select_runs
from sleuth.graphs.persistence.tables import checkpoint_tables, events, threads
from sleuth.graphs.persistence.thread import RunResult, StoredOptions, Thread, ThreadState, outcome_of, to_stored_json
from sleuth.graphs.persistence.thread_locks import ThreadLocks, check_token
from sleuth.tools.errors import RunError, UnknownName, UsageError
from sleuth.tools.storage.id_prefix import MAX_CANDIDATES, complete_id, select_similar

OnQueued = Callable[[Connection, str], object]

MAX_ANSWER = 500
"""Characters of an answer that are stored with its run, to be listed; the checkpoints contain the whole answer."""


@dataclass(frozen=True, kw_only=True)
class AverageCost:
    """The average cost of finished runs."""

    runs: int
    calls: float
    tokens: int
    seconds: float


class Threads:
    """The threads of one owner.

    A thread with the state running whose lock nobody holds is read as interrupted: its process ended without
    recording an end. `on_queued` is called with the id of a thread in each transaction that queues it.
    """

    def __init__(self, engine: Engine, owner: str, locks: ThreadLocks, on_queued: OnQueued = lambda *_: None) -> None:
        self.engine = engine
        self.owner = owner
        self._locks = locks
        self._on_queued = on_queued

    async def add(self, thread: Thread, *, replaces_empty: bool = False) -> None:
        """Write a new row; it replaces that of a thread which a client has created without a run.

        Raises:
            RunError: the id is used already.
            ThreadBusy: another process has taken the run that this one is a sub-run of.
        """
        row = {**asdict(thread), "options": thread.options.dumps(), "outcome": thread.outcome}
        row |= {name: to_stored_json(row[name]) for name in ("feedback", "client_metadata")}
        of_client = ("feedback", "client_metadata", "created_at")
        begun = {name: value for name, value in row.items() if name not in of_client}
        without_run = threads.c.id == thread.id, self._mine(), threads.c.question == ""

        def write(connection: Connection) -> None:
            if not replaces_empty:
                self._check_metadata(connection, row["client_metadata"])
                connection.execute(insert(threads).values(row))
            elif not connection.execute(update(threads).where(*without_run).values(begun)).rowcount:
                raise already_used(thread.id)
            if thread.state == "queued":
                self._on_queued(connection, thread.id)

        try:
            await self.transact(thread.part_of, write)
        except IntegrityError:
            raise already_used(thread.id) from None

    async def get(self, id: str) -> Thread:
        """Return a thread; raise UnknownName, which suggests a similar id, if it does not exist."""
        thread = await self.find(id)
        if thread is None:
            similar = select_similar(select(threads.c.id).where(self._mine()), threads.c.id, id)
            ids = [row.id for query in similar for row in await self._rows(query)]
            raise UnknownName("thread", id, ids, "`sleuth runs list` shows them.")
        return thread

    async def find(self, id: str) -> Thread | None:
        """Return a thread, or None."""
        rows = await self._find(select(threads).where(threads.c.id == id, self._mine()))
        return rows[0] if rows else None

    async def complete(self, prefix: str) -> str:
        """Return the id of the thread that it names or begins; the sub-runs of a thread count as the thread.

        Raises:
            UnknownName: no thread has it, with the nearest id.
            UsageError: several threads begin with it.
        """
        begun = select(threads.c.id).where(self._mine(), threads.c.id.startswith(prefix, autoescape=True))
        ids = [row.id for row in await self._rows(begun.order_by(threads.c.id).limit(MAX_CANDIDATES))]
        return complete_id("thread", prefix, ids) or (await self.get(prefix)).id

    async def exists(self, id: str) -> bool:
        """Return whether the id is used, by any owner."""
        return bool(await self._rows(select(threads.c.id).where(threads.c.id == id)))

    async def list_newest(self, run_filter: RunFilter = ALL_RUNS, limit: int | None = None) -> list[Thread]:
        """Return the threads that match a filter, the latest first; with a limit not more than these."""
        lost: set[str] = set()
        if {"running", "stopped"} & {*run_filter.outcomes}:
            stored = select(threads.c.id).where(self._mine(), threads.c.outcome == "running")
            running = {row.id for row in await self._rows(stored)}
            lost = running - await self._locks.held(running) if running else set()
        return await self._find(select_runs(self.owner, run_filter, limit, lost=lost, dialect=self.engine.dialect.name))

    async def count_subruns(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of sub-runs of threads that have some."""
        of_them = threads.c.parent.in_(ids), self._mine(), threads.c.subrun > 0
        counted = select(threads.c.parent, func.count()).where(*of_them).group_by(threads.c.parent)
        return {str(parent): int(number) for parent, number in await self._rows(counted)}

    async def average_costs(self) -> dict[str, AverageCost]:
        """Return the average cost of finished runs, by method."""
        columns = threads.c
        averages = func.avg(columns.calls), func.avg(columns.tokens), func.avg(columns.seconds)
        query = select(columns.method, func.count(), *averages)
        query = query.where(self._mine(), columns.calls.is_not(None)).group_by(columns.method)
        return {
            method: AverageCost(
                runs=runs,
                calls=round(float(calls), 1),  # Decimal in Postgres
                tokens=round(float(tokens)),
                seconds=round(float(seconds), 3),
            )
            for method, runs, calls, tokens, seconds in await self._rows(query)
        }

    async def list_all_owners(self) -> list[Thread]:
        """Return the threads of all owners: pruning for one must keep what others share."""
        return await self._find(select(threads))

    async def owners(self) -> list[str]:
        """Return the names of all owners who have runs."""
        return [row.owner for row in await self._rows(select(threads.c.owner).distinct().order_by(threads.c.owner))]

    async def set_state(
        self,
        id: str,
        state: ThreadState,
        *,
        at: str,
        problem: str = "",
        result: RunResult | None = None,
        options: StoredOptions | None = None,
        question: str | None = None,
    ) -> None:
        """Record the state of a run, the result of one that has an answer, and its options and question if they change.

        The outcome of a run that is done without a result is that of its result before.

        Hold the lock of the thread, and read the options under it, to change them. A cancellation is raised after the
        row is written, never before.

        Raises:
            ThreadBusy: another process has taken the run.
        """
        outcome: Any = outcome_of(state, result.verdict if result else None)
        if state == "done" and not result:
            outcome = func.coalesce(threads.c.verdict, outcome)
        values = {"state": state, "problem": problem, "updated_at": at, "outcome": outcome}
        changed: dict[str, Any] = {"options": options.dumps()} if options else {}
        changed |= {"question": question} if question is not None else {}
        changed |= {**asdict(result), "answer": result.answer[:MAX_ANSWER]} if result else {}
        statement = update(threads).where(threads.c.id == id).values({**values, **changed})

        def write(connection: Connection) -> None:
            connection.execute(statement)
            if state == "queued":
                self._on_queued(connection, id)

        await self.transact(id, write)

    async def set_feedback(self, id: str, feedback: Mapping[str, Any]) -> None:
        """Store what a person thinks of an answer; also while the run is running elsewhere."""
        statement = update(threads).where(threads.c.id == id, self._mine()).values(feedback=to_stored_json(feedback))
        await self.transact("", lambda connection: connection.execute(statement))

    async def merge_metadata(self, id: str, metadata: Mapping[str, Any]) -> None:
        """Merge metadata of a client into that of a thread; also while it is running elsewhere.

        Raises:
            UsageError: a thread, or all threads of the owner, would have too much of it.
        """
        conditions = threads.c.id == id, self._mine()

        def write(connection: Connection) -> None:
            stored = connection.scalar(select(threads.c.client_metadata).where(*conditions))
            merged = to_stored_json({**json.loads(stored or "{}"), **metadata})
            self._check_metadata(connection, merged, but=id)
            connection.execute(update(threads).where(*conditions).values(client_metadata=merged))

        await self.transact("", write)

    def _check_metadata(self, connection: Connection, added: str, *, but: str = "") -> None:
        sizes = select(func.sum(func.length(threads.c.client_metadata))).where(self._mine(), threads.c.id != but)
        if added != "{}" and (connection.scalar(sizes) or 0) + len(added) > MAX_METADATA_OF_OWNER:
            raise UsageError(
                f"The metadata of all threads is longer than {MAX_METADATA_OF_OWNER:,} characters: delete some threads."
            )

    async def mark_stopped(self, id: str, *, at: str) -> None:
        """Record that a person stopped a run, unless it has ended, failed or been resumed."""
        unfinished = threads.c.state.in_(("queued", "interrupted"))
        statement = update(threads).where(threads.c.id == id, unfinished)
        values = {"state": "stopped", "outcome": "stopped", "updated_at": at}
        await self.transact(id, lambda connection: connection.execute(statement.values(values)))

    async def subruns_of(self, id: str) -> list[Thread]:
        """Return the sub-runs of a run and of all its branches, the first one first."""
        subruns = await self._find(select(threads).where(threads.c.parent == id, self._mine(), threads.c.subrun > 0))
        return sorted(subruns, key=lambda thread: (thread.subrun, thread.created_at))

    async def remove(self, id: str) -> None:
        """Delete a thread, its checkpoints and events in one transaction, so that no listed run is ever empty."""

        def write(connection: Connection) -> None:
            if connection.execute(delete(threads).where(threads.c.id == id, self._mine())).rowcount:
                for rows in checkpoint_tables(connection):
                    connection.execute(delete(rows).where(rows.c.thread_id == id))
                connection.execute(delete(events).where(events.c.thread == id))

        await self.transact(id, write)

    def _mine(self) -> ColumnElement[bool]:
        return threads.c.owner == self.owner

    async def _find(self, query: Select[Any]) -> list[Thread]:
        """Read rows, and decide which of those with the state running are interrupted."""
        listed = await self._rows(query, _thread)
        running = {thread.id for thread in listed if thread.state == "running"}
        lost = running - await self._locks.held(running) if running else set()
        if not lost:
            return listed
        # A run that has ended since its row was read holds no lock either: only an unchanged row is interrupted.
        again = await self._rows(select(threads).where(threads.c.id.in_(lost)), _thread)
        latest = {thread.id: thread for thread in [*listed, *again]}
        gone = {thread.id for thread in listed if thread.id in lost and latest[thread.id] == thread}
        return [replace(thread, state="interrupted") if thread.id in gone else latest[thread.id] for thread in listed]

    async def _rows(self, query: Select[Any], convert: Callable[[Row[Any]], Any] = lambda row: row) -> list[Any]:
        def read() -> list[Any]:
            with self.engine.connect() as connection:
                return [convert(row) for row in connection.execute(query)]

        return await asyncio.to_thread(read)

    async def transact(self, fenced: str, write: Callable[[Connection], object]) -> None:
        """Write to the end of a transaction; a cancellation is raised after it.

        Raises:
            ThreadBusy: another process has taken the thread `fenced`.
        """
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


def already_used(id: str) -> RunError:
    """Return the error for a new run whose id is used."""
    return RunError(f"Thread {id} was used already: `sleuth resume {id}` resumes it, `runs fork` branches from it.")


def _thread(row: Row[Any]) -> Thread:
    values = dict(row._mapping)
    del values["outcome"]
    values |= {name: json.loads(values[name]) for name in ("feedback", "client_metadata")}
    options = StoredOptions.model_validate_json(values.pop("options"))
    return Thread(**values, options=options)
