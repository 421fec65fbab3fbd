"""Conversations of single-question methods: each run follows up on the answer of an earlier one.

Every turn is a separate run of the rewritten question. The original message and the earlier run are stored here.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Column, ColumnElement, MetaData, String, Table, Text, delete, insert, select
from sqlalchemy.engine import Engine
from sqlalchemy.sql.dml import UpdateBase

from sleuth.agents.formatting import MAX_TURNS, Turn
from sleuth.graphs.core.answer import Cost, Verdict, upgrade_cost
from sleuth.graphs.evidence.answer_text import with_footnotes
from sleuth.graphs.persistence import LONGEST_NAME
from sleuth.graphs.persistence.thread_tables import threads
from sleuth.graphs.runs import RunService
from sleuth.tools.errors import RunError
from sleuth.tools.storage import in_thread, make_tables, transaction

metadata = MetaData()
follow_ups = Table(
    "sleuth_serve_follow_ups",
    metadata,
    Column("thread", String(LONGEST_NAME), primary_key=True),
    Column("after", String(LONGEST_NAME), nullable=False),
    Column("conversation", String(LONGEST_NAME), nullable=False, index=True),
    Column("asked", Text, nullable=False),
    Column("cost", Text, nullable=False),
    Column("warnings", Text, nullable=False),
)


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """A run that follows up on another one. A conversation has the id of its first run.

    `asked` is the original message; `cost` and `warnings` are those of rewriting it.
    """

    thread: str
    after: str
    conversation: str
    asked: str
    cost: Cost
    warnings: list[str]


class Conversations:
    """The stored follow-ups of all owners."""

    def __init__(self, engine: Engine) -> None:
        """Create the table if it is missing; blocks."""
        self._engine = engine
        make_tables(engine, metadata)

    async def add(self, follow_up: FollowUp) -> None:
        """Store a follow-up before its run starts; replace one whose run was never started."""
        row = {**asdict(follow_up), "cost": json.dumps(follow_up.cost), "warnings": json.dumps(follow_up.warnings)}
        old = delete(follow_ups).where(follow_ups.c.thread == follow_up.thread)
        await self._write(old, insert(follow_ups).values(row))

    async def get(self, thread: str) -> FollowUp | None:
        """Return the follow-up of a run; None if it is the first of its conversation."""
        found = await self._read(follow_ups.c.thread == thread)
        return found[0] if found else None

    async def of(self, conversation: str) -> list[FollowUp]:
        """Return all follow-ups of a conversation."""
        return await self._read(follow_ups.c.conversation == conversation)

    async def find(self, threads: Sequence[str]) -> dict[str, FollowUp]:
        """Return the follow-ups among these runs, by run."""
        return {each.thread: each for each in await self._read(follow_ups.c.thread.in_(threads))}

    async def remove(self, thread: str) -> None:
        """Remove a run; its follow-ups stay in the conversation."""
        await self._write(delete(follow_ups).where(follow_ups.c.thread == thread))

    async def remove_orphans(self) -> None:
        """Remove follow-ups whose runs were deleted, by `sleuth runs prune` for instance, or never started."""
        await self._write(delete(follow_ups).where(follow_ups.c.thread.not_in(select(threads.c.id))))

    async def turns_until(self, runs: RunService, thread: str) -> list[Turn]:
        """Return the turns of the conversation up to a run's answer, as the rewriter reads them.

        Raises:
            UnknownName: the run does not exist.
            RunError: the run has no answer yet.
        """
        turns: list[Turn] = []
        at: str | None = (await runs.store.threads.get(thread)).id
        while at and len(turns) < MAX_TURNS:
            turns = [*await _turns_of(runs, at, needs_answer=at == thread), *turns]
            follow_up = await self.get(at)
            at = follow_up.after if follow_up and await runs.store.threads.find(follow_up.after) else None
        return turns

    @in_thread
    def _read(self, wanted: ColumnElement[bool]) -> list[FollowUp]:
        with transaction(self._engine) as connection:
            rows = [dict(row._mapping) for row in connection.execute(select(follow_ups).where(wanted))]
        return [
            FollowUp(**{**row, "cost": upgrade_cost(json.loads(row["cost"])), "warnings": json.loads(row["warnings"])})
            for row in rows
        ]

    @in_thread
    def _write(self, *statements: UpdateBase) -> None:
        with transaction(self._engine, write=True) as connection:
            for statement in statements:
                connection.execute(statement)


async def _turns_of(runs: RunService, thread: str, *, needs_answer: bool) -> Sequence[Turn]:
    """Return a run's question, and its answer if it has one."""
    try:
        answer = await runs.answer(thread)
    except RunError:
        if needs_answer:
            raise
        return [Turn(speaker="user", text=(await runs.store.threads.get(thread)).question)]
    verdict = Verdict(status=answer.status, text=answer.text, citations=answer.citations)
    text = with_footnotes(verdict).text
    return [Turn(speaker="user", text=answer.question), Turn(speaker="assistant", text=text)]
