"""Conversations of single-question methods: each run follows up on the answer of an earlier one.

Every turn is a separate run of the rewritten question. Its options contain the earlier run and the original message.
"""

import json

from sqlalchemy import inspect, select, text, update
from sqlalchemy.engine import Engine

from sleuth.agents.formatting import MAX_TURNS, Turn
from sleuth.graphs.core.answer import Verdict, upgrade_cost
from sleuth.graphs.evidence.answer_text import with_footnotes
from sleuth.graphs.persistence.tables import threads
from sleuth.graphs.persistence.threads import Thread
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import RunError
from sleuth.tools.storage import in_thread, transaction


async def conversation_of(runs: RunService, thread: Thread) -> list[Thread]:
    """Return the runs of a run's conversation that exist, the oldest first."""
    first = first_of(thread)
    ids = await _marked(runs.store.engine, runs.store.threads.owner, first)
    found = [await runs.store.threads.find(id) for id in {first: None, **dict.fromkeys(ids)}]
    return sorted((row for row in found if row and first_of(row) == first), key=lambda row: row.created_at)


def first_of(thread: Thread) -> str:
    """Return the first run of a run's conversation."""
    return thread.options.follow_up.conversation if thread.options.follow_up else thread.id


@in_thread
def _marked(engine: Engine, owner: str, first: str) -> list[str]:
    """Return the ids of an owner's runs whose options name the first run of a conversation."""
    mark = json.dumps({"conversation": first})[1:-1]
    query = select(threads.c.id).where(threads.c.owner == owner, threads.c.options.contains(mark, autoescape=True))
    with transaction(engine) as connection:
        return [*connection.scalars(query)]


async def turns_until(runs: RunService, thread: Thread) -> list[Turn]:
    """Return the turns of the conversation up to a run's answer, as the rewriter reads them.

    Raises:
        RunError: the run has no answer yet.
    """
    turns: list[Turn] = []
    at: Thread | None = thread
    while at and len(turns) < MAX_TURNS:
        turns = [*await _turns_of(runs, at, needs_answer=at is thread), *turns]
        before = at.options.follow_up
        at = await runs.store.threads.find(before.after) if before else None
    return turns


async def _turns_of(runs: RunService, thread: Thread, *, needs_answer: bool) -> list[Turn]:
    """Return a run's question, and its answer if it has one."""
    try:
        answer = await runs.answer(thread.id)
    except RunError:
        if needs_answer:
            raise
        return [Turn(speaker="user", text=thread.question)]
    verdict = Verdict(status=answer.status, text=answer.text, citations=answer.citations)
    text = with_footnotes(verdict).text
    return [Turn(speaker="user", text=answer.question), Turn(speaker="assistant", text=text)]


@in_thread
def adopt_follow_ups(engine: Engine) -> None:
    """Move the follow-ups of older releases from their table into the options of their runs."""
    if not inspect(engine).has_table("sleuth_serve_follow_ups"):
        return
    with transaction(engine, write=True) as connection:
        for row in connection.execute(text("SELECT * FROM sleuth_serve_follow_ups")).mappings().all():
            here = threads.c.id == row["thread"]
            if options := connection.scalar(select(threads.c.options).where(here)):
                kept = {name: row[name] for name in ("after", "conversation", "asked")}
                kept |= {"cost": upgrade_cost(json.loads(row["cost"])), "warnings": json.loads(row["warnings"])}
                made = json.dumps({**json.loads(options), "follow_up": kept})
                connection.execute(update(threads).where(here).values(options=made))
        connection.execute(text("DELETE FROM sleuth_serve_follow_ups"))
