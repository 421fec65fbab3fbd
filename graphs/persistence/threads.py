"""The list of runs: a row per thread with its options, its state and the listed part of its answer."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, insert, select, update
from sqlalchemy.engine import Engine
from sqlalchemy.exc import IntegrityError

from sleuth.graphs.core.answer import Answer, Status
from sleuth.graphs.core.run_parameters import RunParameters
from sleuth.graphs.persistence.client_data import MAX_METADATA_OF_OWNER, to_stored_json
from sleuth.graphs.persistence.run_filter import ALL_RUNS, RunFilter, select_runs
from sleuth.graphs.persistence.tables import LONGEST_NAME, MAX_ANSWER, checkpoint_tables, events, threads
from sleuth.graphs.persistence.thread_locks import ThreadLocks, check_token
from sleuth.tools.errors import RunError, UnknownName, UsageError
from sleuth.tools.storage.id_prefix import MAX_CANDIDATES, complete_id, select_similar

ThreadState = Literal["queued", "running", "waiting", "stopped", "interrupted", "failed", "done"]
"""The state of a run.

queued: stored, not begun. running: a process holds its lock. waiting: for a person's reply. stopped: by a person.
interrupted: its process was killed, lost or shut down. failed: by an error. done: it has an answer.
"""

Outcome = Literal[
    "queued",
    "running",
    "waiting",
    "stopped",
    "failed",
    "done",
    "answered",
    "unknown",
    "refused",
    "invalid_question",
    "out_of_budget",
]
"""The state of a run in one word: of one that is done, the status of its answer.

An interrupted run is stopped. done: a client has created the thread, and no run has begun in it.
"""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The part of a run's answer that is listed.

    `weak`: its sources support it only weakly; None if nothing has checked that.
    """

    verdict: Status
    answer: str
    weak: bool | None = False
    calls: int
    tokens: int
    seconds: float

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Return what the list of runs shows of an answer."""
        cost = answer.cost
        tokens = cost["prompt_tokens"] + cost["completion_tokens"]
        return cls(
            verdict=answer.status,
            answer=answer.text,
            weak=None if answer.is_unchecked else answer.is_weak,
            calls=cost["calls"],
            tokens=tokens,
            seconds=answer.seconds,
        )


@dataclass(frozen=True, kw_only=True)
class AverageCost:
    """The average cost of finished runs."""

    runs: int
    calls: float
    tokens: int
    seconds: float


def outcome_of(state: ThreadState, verdict: Status | None) -> Outcome:
    """Return the outcome of a run in a state, with the status of its answer if it has one."""
    if state == "done":
        return verdict or "done"
    return "stopped" if state == "interrupted" else state


class _Stored(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)


class Turn(_Stored):
    """The input of a chat's turn: a message, or a reply to an interrupt as JSON; `at`: the latest checkpoint before it.

    `start`: the checkpoint at which the turn begins. None if the message continues the conversation. `before`: messages
    that precede it and that no checkpoint has, in the form of LangChain: the question and answer of another run, or
    those of a turn that has ended without an answer. `was` and `problem`: the state of the chat before, which small
    talk does not change. `id`: the id of the message with which the turn begins, also of a reply.
    """

    text: str = ""
    before: list[dict[str, Any]] = []
    was: ThreadState = "done"
    problem: str = ""
    at: str = ""
    start: str | None = Field(default=None, alias="from")
    id: str = ""
    reply: str | None = None


class StoredPages(_Stored):
    """Pages passed with a question, by content hash; `with_collection`: the collection is searched too."""

    texts: list[str] = []
    with_collection: bool = False
    warnings: list[str] = []


class StoredOptions(_Stored, RunParameters):
    """The parameters of a run, its sources, and the next input of a chat.

    `after`: the run that a chat follows up on. They change only under the lock of the thread.
    """

    pages: StoredPages = StoredPages()
    after: str = ""
    turn: Turn | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the options that are not the default ones, in the form in which they are stored."""
        return self.model_dump(by_alias=True, exclude_defaults=True)

    def dumps(self) -> str:
        """Return the stored text."""
        return json.dumps(self.to_json())


NAME = rf"^[\w.@:-]{{1,{LONGEST_NAME}}}$"
"""Pattern of a thread's name, which is part of addresses and of other threads' names."""


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One run: its question and method, the options it was started with, and its state.

    `subrun`: the number of this sub-run in its outer run, from 1; 0 for any other run. `feedback` and `client_metadata`
    are what clients of the server store with it.
    """

    id: str
    owner: str
    method: str
    question: str
    options: StoredOptions = field(default_factory=StoredOptions)
    state: ThreadState = "queued"
    problem: str = ""
    parent: str = ""
    parent_checkpoint: str = ""
    subrun: int = 0
    feedback: dict[str, Any] = field(default_factory=dict)
    client_metadata: dict[str, Any] = field(default_factory=dict)
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
    def title(self) -> str:
        """Return the title that a person has given to the run, or else its label; empty if it has neither."""
        title = self.client_metadata.get("title")
        return title if title and isinstance(title, str) else self.options.label

    @property
    def is_empty(self) -> bool:
        """Return whether a client has created the thread, and no run has begun in it."""
        turn = self.options.turn
        return self.method == "chat" and not self.question and not (turn and turn.text)

    @property
    def part_of(self) -> str:
        """Return the run that this one is a sub-run of; empty for any other run, also for a fork."""
        return self.parent if self.subrun else ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `runs list` prints."""
        more = {"title": self.title, "part_of": self.part_of, "outcome": self.outcome}
        return {**asdict(self), "options": self.options.to_json(), **more}


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The run and checkpoint that a thread comes from, and its number as a sub-run of that run; 0 for a fork."""

    parent: str = ""
    checkpoint: str = ""
    subrun: int = 0


class Threads:
    """The threads of one owner.

    A thread with the state running whose lock nobody holds is read as interrupted: its process ended without
    recording an end.
    """

    def __init__(self, engine: Engine, owner: str, locks: ThreadLocks) -> None:
        self.engine = engine
        self.owner = owner
        self._locks = locks

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

        try:
            await self.transact(thread.part_of, write)
        except IntegrityError:
            raise already_used(thread.id) from None

    async def get(self, id: str) -> Thread:
        """Return a thread; raise UnknownName, which suggests a similar id, if it does not exist."""
        found = await self.find(id)
        if found is None:
            similar = select_similar(select(threads.c.id).where(self._mine()), threads.c.id, id)
            known = [row.id for query in similar for row in await self._rows(query)]
            raise UnknownName("thread", id, known, "`sleuth runs list` shows them.")
        return found

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

    async def list_newest(self, wanted: RunFilter = ALL_RUNS, limit: int | None = None) -> list[Thread]:
        """Return the threads that match a filter, the latest first; with a limit not more than these."""
        lost: set[str] = set()
        if {"running", "stopped"} & {*wanted.outcomes}:
            stored = select(threads.c.id).where(self._mine(), threads.c.outcome == "running")
            running = {row.id for row in await self._rows(stored)}
            lost = running - await self._locks.held(running) if running else set()
        return await self._find(select_runs(self.owner, wanted, limit, lost=lost, dialect=self.engine.dialect.name))

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
        changed = {"options": options.dumps()} if options else {}
        changed |= {"question": question} if question is not None else {}
        statement = update(threads).where(threads.c.id == id).values({**values, **changed, **_columns(result)})
        await self.transact(id, lambda connection: connection.execute(statement))

    async def set_feedback(self, id: str, feedback: Mapping[str, Any]) -> None:
        """Store what a person thinks of an answer; also while the run is running elsewhere."""
        statement = update(threads).where(threads.c.id == id, self._mine()).values(feedback=to_stored_json(feedback))
        await self.transact("", lambda connection: connection.execute(statement))

    async def merge_metadata(self, id: str, metadata: Mapping[str, Any]) -> None:
        """Merge metadata of a client into that of a thread; also while it is running elsewhere.

        Raises:
            UsageError: a thread, or all threads of the owner, would have too much of it.
        """
        own = threads.c.id == id, self._mine()

        def write(connection: Connection) -> None:
            stored = connection.scalar(select(threads.c.client_metadata).where(*own))
            merged = to_stored_json({**json.loads(stored or "{}"), **metadata})
            self._check_metadata(connection, merged, but=id)
            connection.execute(update(threads).where(*own).values(client_metadata=merged))

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
        found = await self._find(select(threads).where(threads.c.parent == id, self._mine(), threads.c.subrun > 0))
        return sorted(found, key=lambda thread: (thread.subrun, thread.created_at))

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
        found = await self._rows(query, _thread)
        running = {thread.id for thread in found if thread.state == "running"}
        lost = running - await self._locks.held(running) if running else set()
        if not lost:
            return found
        # A run that has ended since its row was read holds no lock either: only an unchanged row is interrupted.
        again = await self._rows(select(threads).where(threads.c.id.in_(lost)), _thread)
        latest = {thread.id: thread for thread in [*found, *again]}
        interrupted = {each.id for each in found if each.id in lost and latest[each.id] == each}
        return [replace(each, state="interrupted") if each.id in interrupted else latest[each.id] for each in found]

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


def _columns(result: RunResult | None) -> dict[str, Any]:
    return {**asdict(result), "answer": result.answer[:MAX_ANSWER]} if result else {}


def _thread(row: Row[Any]) -> Thread:
    values = dict(row._mapping)
    del values["outcome"]
    values |= {name: json.loads(values[name]) for name in ("feedback", "client_metadata")}
    options = StoredOptions.model_validate_json(values.pop("options"))
    return Thread(**values, options=options)


def already_used(id: str) -> RunError:
    """Return the error for a new run whose id is used."""
    return RunError(f"Thread {id} was used already: `sleuth resume {id}` resumes it, `runs fork` branches from it.")
