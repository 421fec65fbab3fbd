"""Removal of old runs, old checkpoints, and texts that no run needs.

The keyed fields of a checkpoint are stored as changes to its ancestors. Before ancestors are deleted, the oldest kept
checkpoint of each branch is rewritten with its whole state, so that all kept checkpoints can still be read and forked.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from sqlalchemy import Connection, delete, select, text

from sleuth.graphs.core.state import find_hashes
from sleuth.graphs.persistence.tables import checkpoint_tables
from sleuth.graphs.persistence.thread import Thread
from sleuth.graphs.runs.execution import Compiled, checkpoint_id_of, parent_id
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import UsageError
from sleuth.tools.langgraph_internals import DeltaSnapshot

_ROWS = 100
_HASH = re.compile(rb"[0-9a-f]{64}")

UNUSED_BLOBS = """
    DELETE FROM checkpoint_blobs b WHERE thread_id = :thread AND NOT EXISTS (
    SELECT FROM checkpoints k, jsonb_each_text(k.checkpoint -> 'channel_versions') used
    WHERE k.thread_id = b.thread_id AND k.checkpoint_ns = b.checkpoint_ns
    AND used.key = b.channel AND used.value = b.version)
"""
"""Postgres stores the values of channels apart from the checkpoints, once per version."""


@dataclass(frozen=True, kw_only=True)
class PruneReport:
    """Numbers of removed runs, checkpoints and archived texts."""

    threads: int = 0
    checkpoints: int = 0
    texts: int = 0


@dataclass(frozen=True, kw_only=True)
class PrunePreview:
    """Removals of a prune: whole runs, and checkpoints of the other runs, counted by thread."""

    threads: list[Thread]
    checkpoints: dict[str, int]


async def preview_prune(runs: RunService, *, older_than: float | None, keep_last: int | None) -> PrunePreview:
    """Return what `prune` would remove now. Nothing is changed, and no lock is needed."""
    gone = await _unchanged(runs, older_than)
    left = [thread for thread in await runs.store.threads.list_newest() if thread not in gone] if keep_last else []
    counts = {thread.id: len(await _checkpoints(runs, thread)) - (keep_last or 0) for thread in left}
    return PrunePreview(threads=gone, checkpoints={id: count for id, count in counts.items() if count > 0})


async def prune(runs: RunService, *, older_than: float | None, keep_last: int | None) -> PruneReport:
    """Remove runs unchanged for `older_than` seconds, and all but the `keep_last` latest checkpoints of the others.

    Sub-runs are removed with their run. Only the owner's runs are changed; texts are kept as long as any owner's run
    names them. The caller holds the exclusive lock on SLEUTH_HOME; other machines may start or resume runs meanwhile.

    Raises:
        ThreadBusy: one of the runs is running.
    """
    epoch = await runs.store.archive.start_prune_epoch()
    threads, checkpoints = await _remove_all(runs, await _unchanged(runs, older_than)), 0
    for thread in await runs.store.threads.list_all_owners():
        async with runs.store.locks.hold(thread.id):
            if keep_last and thread.owner == runs.store.threads.owner:
                checkpoints += await _delete_old_checkpoints(runs, thread, keep_last)
    return PruneReport(threads=threads, checkpoints=checkpoints, texts=await _delete_unused_texts(runs, epoch))


async def remove_runs(runs: RunService, *ids: str) -> list[Thread]:
    """Remove runs with their sub-runs and those of these, and return all threads that were removed.

    Texts that no other run names are removed too; by the next prune, if a run is running meanwhile.

    Raises:
        UnknownName: one of the runs does not exist. Nothing is removed.
        UsageError: one of them is a sub-run of another run. Nothing is removed.
        ThreadBusy: one of them is running. Nothing is removed, unless it began to run during the removal.
    """
    removed: list[Thread] = []
    for thread in [await runs.store.threads.get(id) for id in dict.fromkeys(ids)]:
        if thread.part_of and await runs.store.threads.exists(thread.part_of):
            raise UsageError(f"Thread {thread.id} is part of run {thread.part_of}: remove that one.")
        removed += await _with_subruns(runs, thread)
    for thread in removed:
        async with runs.store.locks.hold(thread.id):
            pass
    for thread in removed:
        async with runs.store.locks.hold(thread.id):
            await _remove(runs, thread)
    await _delete_unused_texts(runs, await runs.store.archive.start_prune_epoch())
    return removed


async def _with_subruns(runs: RunService, thread: Thread) -> list[Thread]:
    """Return a run and all runs below it, each after the one that it is part of."""
    threads = [thread]
    for outer in threads:
        threads += await runs.store.threads.subruns_of(outer.id)
    return threads


async def _delete_unused_texts(runs: RunService, epoch: int) -> int:
    """Delete texts of earlier epochs that no run names, and return their number.

    Nothing is deleted while a run is running: it may need texts that it has yet to name. A run that starts meanwhile
    stores its texts in the present epoch.
    """
    if any(thread.state == "running" for thread in await runs.store.threads.list_all_owners()):
        return 0
    used = await asyncio.to_thread(_named_in_rows, runs)
    for thread in await runs.store.threads.list_all_owners():  # pages passed with a run are stored before its row
        used |= find_hashes(thread.options.to_json())
    return await runs.store.archive.delete_all_but(used, before=epoch)


async def _remove_all(runs: RunService, old: list[Thread]) -> int:
    """Remove the runs that are unchanged since they were listed, and return their number."""
    stay: set[str] = set()
    for thread in old:
        async with runs.store.locks.hold(thread.id):
            now = await runs.store.threads.find(thread.id)
            if thread.part_of in stay or now is None or now.updated_at != thread.updated_at:
                stay.add(thread.id)
            else:
                await _remove(runs, thread)
    return len(old) - len(stay)


async def _remove(runs: RunService, thread: Thread) -> None:
    await runs.store.threads.remove(thread.id)
    # While the lock is held: the next holder creates a new file.
    await runs.store.locks.forget(thread.id)


async def _unchanged(runs: RunService, seconds: float | None) -> list[Thread]:
    """Return the runs that have not changed for some seconds: a run and all runs below it together, or none of them.

    The run is removed first: if the process is killed, the next prune removes sub-runs without a run, and no run lacks
    a sub-run.
    """
    if seconds is None:
        return []
    since = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
    threads = {thread.id: thread for thread in await runs.store.threads.list_newest()}
    paths = {id: _path(thread, threads) for id, thread in threads.items()}
    young = {paths[id][-1] for id, thread in threads.items() if thread.updated_at >= since}
    old = [thread for id, thread in threads.items() if paths[id][-1] not in young]
    return sorted(old, key=lambda thread: len(paths[thread.id]))


def _path(thread: Thread, runs: Mapping[str, Thread]) -> list[str]:
    """Return the ids of a run, of the run that it is part of, and so on to the outermost one."""
    path = [thread.id]
    while outer := runs.get(thread.part_of):
        path.append(outer.id)
        thread = outer
    return path


def _named_in_rows(runs: RunService) -> set[str]:
    """Return the texts that the rows of all runs name: all in a cell that looks like a content hash."""
    named: set[str] = set()
    with runs.store.engine.connect() as connection:
        for rows in checkpoint_tables(connection):
            for row in connection.execution_options(yield_per=_ROWS).execute(select(text("*")).select_from(rows)):
                cells = (cell if isinstance(cell, bytes) else str(cell).encode("utf-8", "replace") for cell in row)
                named |= {match.decode() for cell in cells for match in _HASH.findall(cell)}
    return named


async def _delete_old_checkpoints(runs: RunService, thread: Thread, keep_last: int) -> int:
    """Remove all but the latest checkpoints of a thread, and return the number of removed ones."""
    every = await _checkpoints(runs, thread)
    remaining, gone = every[:keep_last], every[keep_last:]
    if not gone:
        return 0
    ids = {checkpoint_id_of(checkpoint) for checkpoint in remaining}
    for checkpoint in remaining:
        if checkpoint.parent_config and parent_id(checkpoint) not in ids:
            await materialize_checkpoint(runs.graph(thread), checkpoint)
    unneeded = [checkpoint_id_of(checkpoint) for checkpoint in gone]

    def delete_unneeded(connection: Connection) -> None:
        for rows in checkpoint_tables(connection)[:2]:
            connection.execute(delete(rows).where(rows.c.thread_id == thread.id, rows.c.checkpoint_id.in_(unneeded)))
        if connection.dialect.name == "postgresql":
            connection.execute(text(UNUSED_BLOBS), {"thread": thread.id})

    await runs.store.threads.transact(thread.id, delete_unneeded)
    return len(gone)


async def _checkpoints(runs: RunService, thread: Thread) -> list[CheckpointTuple]:
    """Return all checkpoints of a thread, the latest first."""
    config = runs.config(thread)
    return [checkpoint async for checkpoint in runs.store.saver.alist({"configurable": config["configurable"]})]


async def materialize_checkpoint(graph: Compiled, saved: CheckpointTuple) -> None:
    """Rewrite a checkpoint of a graph so that it needs no ancestor."""
    state = await graph.aget_state(saved.config)
    # A channel without a version was never written to: it is empty with and without ancestors.
    versions = {
        name: version
        for name, version in saved.checkpoint["channel_versions"].items()
        if name in state.values and isinstance(graph.channels.get(name), DeltaChannel)
    }
    whole = {name: DeltaSnapshot(state.values[name]) for name in versions}
    checkpoint = {**saved.checkpoint, "channel_values": {**saved.checkpoint["channel_values"], **whole}}
    assert saved.parent_config
    assert isinstance(graph.checkpointer, BaseCheckpointSaver)
    await graph.checkpointer.aput(saved.parent_config, checkpoint, saved.metadata, versions)  # type: ignore[arg-type]
