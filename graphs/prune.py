"""Removing old runs, old checkpoints, and the texts that nothing names any more.

A checkpoint's keyed fields are stored as changes on top of its ancestors'. Before ancestors go, the oldest kept
checkpoint of each branch is rewritten with its whole state, so that every kept checkpoint can still be read and forked.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from sqlalchemy import bindparam, delete, text

from sleuth.graphs.history import hashes_in
from sleuth.graphs.hops import Compiled
from sleuth.graphs.runs import Runs
from sleuth.graphs.threads import Thread
from sleuth.graphs.threads import threads as listed
from sleuth.tools.errors import UsageError

WRITES = {"sqlite": "writes", "postgresql": "checkpoint_writes"}

TABLES = {
    "sqlite": ("checkpoints", "writes"),
    "postgresql": ("checkpoints", "checkpoint_blobs", "checkpoint_writes"),
}
"""All that LangGraph keeps of a thread."""

UNUSED_BLOBS = """
    DELETE FROM checkpoint_blobs b WHERE thread_id = :thread AND NOT EXISTS (
    SELECT FROM checkpoints k, jsonb_each_text(k.checkpoint -> 'channel_versions') used
    WHERE k.thread_id = b.thread_id AND k.checkpoint_ns = b.checkpoint_ns
    AND used.key = b.channel AND used.value = b.version)
"""
"""Postgres keeps the values of channels beside the checkpoints, once per version."""


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """How many runs, checkpoints and archived texts went."""

    threads: int = 0
    checkpoints: int = 0
    texts: int = 0


async def prune(runs: Runs, *, older_than: float | None, keep_last: int | None) -> Pruned:
    """Removes runs untouched for `older_than` seconds, and all but the `keep_last` latest checkpoints of the others.

    A run's hops stay and go with it.

    Only the owner's runs are touched; texts stay as long as any owner's run names them. The caller holds the
    exclusive lock on SLEUTH_HOME. Other machines may begin runs meanwhile, or go on with those that were looked at:
    every text that these need is named in what was looked at, or kept, maybe once more, in the era that begins here.

    Raises:
        ThreadBusy: one of the runs is running.
    """
    era = await runs.store.archive.begin_era()
    threads, checkpoints = 0, 0
    if older_than is not None:
        limit = (datetime.now(UTC) - timedelta(seconds=older_than)).isoformat(timespec="milliseconds")
        threads = await _remove_all(runs, _untouched(await runs.store.threads.newest(), limit))
    kept: set[str] = set()
    for thread in await runs.store.threads.everyones():
        async with runs.store.leases.hold(thread.id):
            if keep_last and thread.owner == runs.store.threads.owner:
                checkpoints += await _cut(runs, thread, keep_last)
            kept |= await _needed(runs, thread)
    for thread in await runs.store.threads.everyones():  # what was handed in with a run is kept before its row
        kept |= hashes_in(thread.options)
    texts = await runs.store.archive.drop_all_but(kept, before=era)
    return Pruned(threads=threads, checkpoints=checkpoints, texts=texts)


async def remove(runs: Runs, id: str) -> None:
    """Removes one run with its hops; texts that nothing names any more go at the next prune.

    Raises:
        UsageError: it is a hop of another run.
        ThreadBusy: it is running.
    """
    thread = await runs.store.threads.get(id)
    if thread.part_of:
        raise UsageError(f"Thread {id} is part of run {thread.part_of}: remove that one.")
    for each in [thread, *await runs.store.threads.hops_of(id)]:
        await _remove(runs, each)


async def _remove_all(runs: Runs, old: list[Thread]) -> int:
    """Removes those that are as they were listed, not those that somebody has gone on with; returns how many went."""
    stay: set[str] = set()
    for thread in old:
        async with runs.store.leases.hold(thread.id):
            if thread.part_of in stay or await runs.store.threads.find(thread.id) != thread:
                stay.add(thread.id)
            else:
                await _clear(runs, thread)
    return len(old) - len(stay)


async def _remove(runs: Runs, thread: Thread) -> None:
    async with runs.store.leases.hold(thread.id):
        await _clear(runs, thread)


async def _clear(runs: Runs, thread: Thread) -> None:
    await asyncio.to_thread(_delete_run, runs, thread)
    # While it is held: whoever takes it next makes a file of their own.
    await runs.store.leases.forget(thread.id)


def _untouched(threads: list[Thread], since: str) -> list[Thread]:
    """The threads to remove: a run and its hops go together, once all of them are old enough.

    The run goes first: a hop whose run is gone is removed by the next prune, a run never lacks a hop.
    """
    runs = {thread.id for thread in threads}
    whole = {thread.id: thread.part_of if thread.part_of in runs else thread.id for thread in threads}
    young = {whole[thread.id] for thread in threads if thread.updated_at >= since}
    return sorted((each for each in threads if whole[each.id] not in young), key=lambda each: each.hop)


async def _needed(runs: Runs, thread: Thread) -> set[str]:
    """The texts that a thread and its checkpoints name, those of finished calls not yet in a checkpoint among them."""
    graph, config = runs.graph(thread), runs.config(thread)
    named = hashes_in(thread.options)
    async for state in graph.aget_state_history(config):
        named |= hashes_in(state.values)
    latest = await runs.store.saver.aget_tuple(config)
    return named | hashes_in([write for *_, write in (latest.pending_writes or [])] if latest else [])


async def _cut(runs: Runs, thread: Thread, keep_last: int) -> int:
    """Removes all but the latest checkpoints of a thread; returns how many went."""
    config = runs.config(thread)
    every = [found async for found in runs.store.saver.alist({"configurable": config["configurable"]})]
    kept, gone = every[:keep_last], every[keep_last:]
    if not gone:
        return 0
    ids = {_id(found) for found in kept}
    for found in kept:
        if found.parent_config and found.parent_config["configurable"]["checkpoint_id"] not in ids:
            await make_whole(runs.graph(thread), found)
    await asyncio.to_thread(_delete, runs, thread, [_id(found) for found in gone])
    return len(gone)


def _id(found: CheckpointTuple) -> str:
    return str(found.config["configurable"]["checkpoint_id"])


async def make_whole(graph: Compiled, found: CheckpointTuple) -> None:
    """Rewrites a checkpoint of a graph so that it needs no ancestor."""
    state = await graph.aget_state(found.config)
    # A channel without a version was never written to: it is empty with and without ancestors.
    versions = {
        name: version
        for name, version in found.checkpoint["channel_versions"].items()
        if name in state.values and isinstance(graph.channels.get(name), DeltaChannel)
    }
    whole = {name: _DeltaSnapshot(state.values[name]) for name in versions}
    checkpoint = {**found.checkpoint, "channel_values": {**found.checkpoint["channel_values"], **whole}}
    assert found.parent_config
    assert isinstance(graph.checkpointer, BaseCheckpointSaver)
    await graph.checkpointer.aput(found.parent_config, checkpoint, found.metadata, versions)  # type: ignore[arg-type]


def _delete_run(runs: Runs, thread: Thread) -> None:
    """All of it at once: whoever is killed on the way leaves no run that is listed and has nothing in it."""
    with runs.store.engine.execution_options(sleuth_write=True).begin() as connection:
        for table in TABLES[runs.store.engine.dialect.name]:
            rows = text(f"DELETE FROM {table} WHERE thread_id = :thread")  # noqa: S608 - ours
            connection.execute(rows, {"thread": thread.id})
        connection.execute(delete(listed).where(listed.c.id == thread.id))


def _delete(runs: Runs, thread: Thread, ids: list[str]) -> None:
    with runs.store.engine.execution_options(sleuth_write=True).begin() as connection:
        for table in ("checkpoints", WRITES[runs.store.engine.dialect.name]):
            rows = text(f"DELETE FROM {table} WHERE thread_id = :thread AND checkpoint_id IN :ids")  # noqa: S608 - ours
            given: dict[str, Any] = {"thread": thread.id, "ids": ids}
            connection.execute(rows.bindparams(bindparam("ids", expanding=True)), given)
        if runs.store.engine.dialect.name == "postgresql":
            connection.execute(text(UNUSED_BLOBS), {"thread": thread.id})
