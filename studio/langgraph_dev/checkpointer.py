"""The checkpointer of `langgraph dev` (langgraph.json): a SQLite file, so that a kill loses no checkpoint.

The server stores its list of threads every ten seconds. After a kill, a younger thread still has its checkpoints:
create the thread again with the same id to use them.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from sqlite3 import Cursor
from uuid import UUID

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME

from sleuth.graphs.persistence.checkpoints import CheckpointSerializer, SqliteCheckpoints
from sleuth.graphs.registry import METHODS, OTHERS
from sleuth.graphs.runs.execution import compile_method
from sleuth.graphs.runs.pruning import materialize_checkpoint
from sleuth.tools.settings import Settings

Place = tuple[str, str, str]
"""A checkpoint: its thread, namespace and id."""

_OF_RUNS = "json_extract(CAST(metadata AS TEXT), '$.run_id') IN (SELECT value FROM json_each(?))"

_CHILDREN = "FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND parent_checkpoint_id = ?"

_HERE = "thread_id = :thread AND checkpoint_ns = :ns AND checkpoint_id = :id"
_WAITED = f"SELECT task_id FROM writes WHERE {_HERE} AND channel = :interrupt"  # noqa: S608 - ours
_UNDO = (
    f"DELETE FROM writes WHERE {_HERE} AND task_id = :nobody AND channel = :resume",  # noqa: S608
    f"DELETE FROM writes WHERE {_HERE} AND channel <> :interrupt AND task_id IN ({_WAITED})",  # noqa: S608
)


class DevCheckpoints(SqliteCheckpoints):
    """Checkpointer that can roll back the runs of a LangGraph server.

    Graphs of sleuth store growing data as changes on top of earlier checkpoints. A checkpoint whose predecessors are
    deleted is first rewritten with its whole state.
    """

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Roll back runs: delete their checkpoints and their input."""
        for place in await self.transact(partial(_orphans, run_ids)):
            await self._make_whole(place)
        await self.transact(partial(_delete, run_ids))

    async def _make_whole(self, place: Place) -> None:
        thread, namespace, id = place
        config = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": id}
        checkpoint = await self.aget_tuple({"configurable": config})
        graph = await self.transact(partial(_graph_of, thread))
        if checkpoint and graph in {*METHODS, *OTHERS}:
            await materialize_checkpoint(compile_method(graph, self), checkpoint)


def _graph_of(thread: str, cursor: Cursor) -> str:
    """Return the name of a thread's graph, or "None": runs store it, updates of the state do not."""
    named = "SELECT max(json_extract(CAST(metadata AS TEXT), '$.graph_id')) FROM checkpoints WHERE thread_id = ?"
    return str(cursor.execute(named, [thread]).fetchone()[0])


def _orphans(runs: Sequence[str], cursor: Cursor) -> list[Place]:
    """Return the remaining checkpoints whose parents will be deleted."""
    places = f"SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE {_OF_RUNS}"  # noqa: S608 - ours
    gone = set(cursor.execute(places, [json.dumps(runs)]).fetchall())
    children = [
        (*place[:2], str(id))
        for place in gone
        for (id,) in cursor.execute(f"SELECT checkpoint_id {_CHILDREN}", place).fetchall()
    ]
    return [child for child in children if child not in gone]


def _delete(runs: Sequence[str], cursor: Cursor) -> None:
    """Delete checkpoints and their writes; undo their changes to the checkpoints that are now the last."""
    deleted = "RETURNING thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id"
    rows = cursor.execute(f"DELETE FROM checkpoints WHERE {_OF_RUNS} {deleted}", [json.dumps(runs)]).fetchall()  # noqa: S608
    gone = [tuple(row[:3]) for row in rows]
    cursor.executemany("DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?", gone)
    ends = {(thread, namespace, parent) for thread, namespace, _, parent in rows if parent}.difference(gone)
    for place in ends:
        if not cursor.execute(f"SELECT 1 {_CHILDREN}", place).fetchone():
            _undo(place, cursor)


def _undo(place: Place, cursor: Cursor) -> None:
    """Delete the writes that a run left in the checkpoint from which it continued.

    These are the replies to interrupts, and the writes of the tasks that received the replies.
    """
    thread, namespace, id = place
    nobody = str(UUID(int=0))
    values = {"thread": thread, "ns": namespace, "id": id, "resume": RESUME, "interrupt": INTERRUPT, "nobody": nobody}
    for statement in _UNDO:
        cursor.execute(statement, values)


@asynccontextmanager
async def saver() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpointer, a separate file in SLEUTH_HOME: the server's threads are not in `sleuth runs`."""
    settings = await asyncio.to_thread(Settings)
    await asyncio.to_thread(settings.home.mkdir, parents=True, exist_ok=True)
    async with DevCheckpoints.open(settings.home / "studio-checkpoints.sqlite", CheckpointSerializer()) as checkpointer:
        yield checkpointer
