"""The list of runs: a row per thread with its options, its state and the listed part of its answer."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, insert, not_, or_, select, tuple_, update
from sqlalchemy.engine import Engine

from sleuth.graphs.core.answer import Answer, Status
from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence.tables import (
    IS_SUBRUN,
    LONGEST_NAME,
    MAX_ANSWER,
    checkpoint_tables,
    threads,
)
from sleuth.graphs.persistence.thread_locks import ThreadLocks, check_token
from sleuth.tools.errors import UnknownName
from sleuth.tools.settings import Profile
from sleuth.tools.storage.id_prefix import MAX_CANDIDATES, complete_id

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

An interrupted run is stopped. done: an older release ran it, and its answer has not been read since.
"""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The part of a run's answer that is listed; `weak` if its sources support it only weakly."""

    verdict: Status
    answer: str
    weak: bool = False
    calls: int
    tokens: int
    seconds: float | None

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Return what the list of runs shows of an answer."""
        cost = answer.cost
        tokens = cost["prompt_tokens"] + cost["completion_tokens"]
        return cls(
            verdict=answer.status,
            answer=answer.text,
            weak=answer.is_weak,
            calls=cost["calls"],
            tokens=tokens,
            seconds=answer.seconds,
        )


@dataclass(frozen=True, kw_only=True)
class AverageCost:
    """The average cost of finished runs; `seconds` is None if older releases ran all of them."""

    runs: int
    calls: float
    tokens: int
    seconds: float | None


def outcome_of(state: ThreadState, verdict: Status | None) -> Outcome:
    """Return the outcome of a run in a state, with the status of its answer if it has one."""
    if state == "done":
        return verdict or "done"
    return "stopped" if state == "interrupted" else state


class _Stored(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)


class Turn(_Stored):
    """The input of a chat's turn: a message, or a reply to an interrupt as JSON; `at`: the latest checkpoint before it.

    `start`: the checkpoint at which the turn begins. None if the message continues the conversation. `earlier`: the
    question and answer of another run, which the first message of a chat follows up on.
    """

    text: str = ""
    earlier: tuple[str, str] | None = None
    at: str = ""
    start: str | None = Field(default=None, alias="from")
    id: str = ""
    reply: str | None = None


class StoredPages(_Stored):
    """Pages passed with a question, by content hash; `beside`: the collection is searched too."""

    texts: list[str] = []
    beside: bool = False
    warnings: list[str] = []


class StoredOptions(_Stored):
    """Settings, budget and sources that a run was started with, and values that clients of the server store with it.

    `values`: settings of the method. `hop`: number as a sub-run, 0 for any other run. `where`: filter of the documents.
    """

    values: dict[str, Any] = {}
    profile: Profile = "default"
    budget: Budget = Budget()
    hop: int = 0
    pages: StoredPages = StoredPages()
    where: str = ""
    turn: Turn | None = None
    feedback: dict[str, Any] = {}
    langgraph_metadata: dict[str, Any] = {}

    def to_json(self) -> dict[str, Any]:
        """Return the options that were set, in the form in which they are stored."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    def dumps(self) -> str:
        """Return the stored text; sub-runs are found by the spacing of `json.dumps`."""
        return json.dumps(self.to_json())


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

    parent: str = ""
    checkpoint: str = ""
    hop: int = 0


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """A filter of the list of runs; an empty field does not filter.

    `find`: the question or answer contains each of these words. `since` and `until`: last changed from and
    before these times (ISO 8601, UTC). `before` and `before_id`: after this run in the list, the latest first.
    """

    find: str = ""
    outcomes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    before: str = ""
    before_id: str = ""
    with_subruns: bool = True


def select_runs(owner: str, wanted: RunFilter, limit: int | None) -> Select[Any]:
    """Return the query for an owner's runs, the latest first."""
    columns = threads.c
    query = select(threads).where(columns.owner == owner)
    query = query.order_by(columns.updated_at.desc(), columns.id.desc()).limit(limit)
    for word in re.findall(r"\w+", wanted.find):
        forms = word, word.capitalize()  # SQLite ignores the case of English letters only
        texts = (columns.question, columns.answer)
        query = query.where(or_(*(text.icontains(form, autoescape=True) for text in texts for form in forms)))
    if wanted.outcomes:
        # A stopped run may be stored as running: its process was killed.
        also = ("running",) if "stopped" in wanted.outcomes else ()
        query = query.where(columns.outcome.in_((*wanted.outcomes, *also)))
    if wanted.methods:
        query = query.where(columns.method.in_(wanted.methods))
    if wanted.since:
        query = query.where(columns.updated_at >= wanted.since)
    if wanted.until:
        query = query.where(columns.updated_at < wanted.until)
    if wanted.before_id:
        query = query.where(tuple_(columns.updated_at, columns.id) < tuple_(wanted.before, wanted.before_id))
    elif wanted.before:
        query = query.where(columns.updated_at < wanted.before)
    return query if wanted.with_subruns else query.where(not_(IS_SUBRUN))


class Threads:
    """The threads of one owner.

    A thread with the state running whose lock nobody holds is read as interrupted: its process ended without
    recording an end.
    """

    def __init__(self, engine: Engine, owner: str, locks: ThreadLocks) -> None:
        self.engine = engine
        self.owner = owner
        self._locks = locks

    async def add(self, thread: Thread) -> None:
        """Write a new row; raise ThreadBusy for a sub-run of a run that another process has taken."""
        row = {**asdict(thread), "status": thread.state, "options": thread.options.dumps()}
        del row["state"]

        statement = insert(threads).values({**row, "outcome": thread.outcome})
        await self.transact(thread.part_of, lambda connection: connection.execute(statement))

    async def get(self, id: str) -> Thread:
        """Return a thread; raise UnknownName with the nearest id if it does not exist."""
        found = await self.find(id)
        if found is None:
            known = [thread.id for thread in await self.list_newest()]
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

    async def list_newest(self, wanted: RunFilter = RunFilter(), limit: int | None = None) -> list[Thread]:
        """Return the threads that match a filter, the latest first; with a limit not more than these."""
        found = await self._find(select_runs(self.owner, wanted, limit))
        return [thread for thread in found if not wanted.outcomes or thread.outcome in wanted.outcomes]

    async def count_subruns(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of sub-runs of threads that have some."""
        of_them = threads.c.parent.in_(ids), self._mine(), IS_SUBRUN
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
                seconds=None if seconds is None else round(float(seconds), 3),
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
        statement = update(threads).where(threads.c.id == id).values(values)
        await self.transact(id, lambda connection: connection.execute(statement))

    async def mark_stopped(self, id: str, *, at: str) -> None:
        """Record that a person stopped a run, unless it has ended, failed or been resumed."""
        unfinished = threads.c.status.in_(("new", "queued", "interrupted"))
        statement = update(threads).where(threads.c.id == id, unfinished)
        values = {"status": "stopped", "outcome": "stopped", "updated_at": at}
        await self.transact(id, lambda connection: connection.execute(statement.values(values)))

    async def subruns_of(self, id: str) -> list[Thread]:
        """Return the sub-runs of a run and of all its branches, the first one first."""
        found = await self._find(select(threads).where(threads.c.parent == id, self._mine()))
        return sorted((thread for thread in found if thread.hop), key=lambda thread: (thread.hop, thread.created_at))

    async def set_options(self, id: str, options: StoredOptions) -> None:
        """Replace the options of a run."""
        await self._set(id, {"options": options.dumps()})

    async def remove(self, id: str) -> None:
        """Delete a thread and its checkpoints in one transaction, so that no listed run is ever empty."""

        def write(connection: Connection) -> None:
            if connection.execute(delete(threads).where(threads.c.id == id, self._mine())).rowcount:
                for rows in checkpoint_tables(connection):
                    connection.execute(delete(rows).where(rows.c.thread_id == id))

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
    """Return a row's thread; old names of states are read as the new ones."""
    values = dict(row._mapping)
    status = values.pop("status")
    del values["outcome"]
    options = StoredOptions.model_validate_json(values.pop("options"))
    return Thread(**values, state="queued" if status == "new" else status, options=options)
