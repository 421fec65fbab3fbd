"""Pruning: each kept checkpoint is unchanged and can be forked and resumed."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from four_hops import QUESTION, InProcess
from postgres_fixture import BOTH_STORES
from sqlalchemy import text
from stored_runs import assert_has_texts, finished, interrupt, open_runs, own_settings, services

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.persistence.tables import CHECKPOINT_TABLES
from sleuth.graphs.persistence.thread import ThreadState
from sleuth.graphs.runs.execution import checkpoint_id_of
from sleuth.graphs.runs.history import fork_run, list_checkpoints
from sleuth.graphs.runs.pruning import PruneReport, prune
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.errors import UnknownName

pytestmark = BOTH_STORES


@pytest.fixture
async def runs(tmp_path: Path, database_url: str | None) -> AsyncIterator[RunService]:
    async with open_runs(own_settings(tmp_path, database_url)) as opened:
        yield opened


async def branched(runs: RunService) -> tuple[str, set[str]]:
    """A run with three branches: the first, one with the same end, and a changed one that is interrupted.

    Return the thread, and the completed calls of the last branch.
    """
    id, _ = await finished(runs)
    trunk = await list_checkpoints(runs, id)
    await fork_run(runs, id, at=trunk[len(trunk) // 2].checkpoint)
    await last_answer(runs.run(id))
    planned = next(moment for moment in reversed(trunk) if moment.node == ["plan"])
    await fork_run(runs, id, at=planned.checkpoint, changes={"plan": {"4": None, "5": None}})
    model = InProcess(hold_at=4)
    await interrupt(runs, id, model, pause=0.3)
    return id, {request.call_id for request in model.requests if request is not model.requests[3]}


async def states(runs: RunService, id: str) -> dict[str, tuple[dict[str, Any], tuple[str, ...]]]:
    """Every checkpoint's whole state and what comes next."""
    thread = await runs.store.threads.get(id)
    found = runs.graph(thread).aget_state_history(runs.config(thread))
    return {checkpoint_id_of(state): (state.values, state.next) async for state in found}


def count(runs: RunService, table: str, id: str) -> int:
    with runs.store.engine.connect() as connection:
        return int(connection.scalar(text(f"SELECT count(*) FROM {table} WHERE thread_id = :id"), {"id": id}) or 0)


@pytest.mark.nightly
@pytest.mark.parametrize("keep_last", [1, 3, 20])
async def test_kept_checkpoints_are_unchanged_by_a_prune(runs: RunService, keep_last: int) -> None:
    id, _ = await branched(runs)
    before = await states(runs, id)
    gone = await prune(runs, older_than=None, keep_last=keep_last)
    after = await states(runs, id)
    assert gone.checkpoints >= len(before) - keep_last
    assert list(after) == list(before)[:keep_last]
    assert after == {id: before[id] for id in after}
    assert [list(values.get("notes", {})) for values, _ in after.values()] == [
        list(before[id][0].get("notes", {})) for id in after
    ]
    await assert_has_texts(runs, id)
    assert (await prune(runs, older_than=None, keep_last=keep_last)).checkpoints == 0


async def test_kept_checkpoints_can_be_forked_to_the_same_end(runs: RunService) -> None:
    id, answer = await finished(runs)
    await prune(runs, older_than=None, keep_last=6)
    kept = [moment.checkpoint for moment in await list_checkpoints(runs, id)]
    for at in kept[::2]:
        await fork_run(runs, id, at=at)
        again = await last_answer(runs.run(id))
        assert replace(again, checkpoint="") == replace(answer, checkpoint="")
    with pytest.raises(UnknownName, match="no checkpoint"):
        await fork_run(runs, id, at="1f000000-0000-6000-8000-000000000000")


@pytest.mark.nightly
@pytest.mark.parametrize("keep_last", [1, 3])
async def test_interrupted_run_resumes_after_a_prune(runs: RunService, keep_last: int) -> None:
    """Calls that had completed are still not made again: their results are kept with the latest checkpoint."""
    id, completed = await branched(runs)
    twin, _ = await branched(runs)
    expected = await last_answer(runs.run(twin))
    await prune(runs, older_than=None, keep_last=keep_last)
    model = InProcess()
    answer = await last_answer(RunService(runs.store, services(model)).run(id))
    assert replace(answer, thread="", checkpoint="") == replace(expected, thread="", checkpoint="")
    assert completed
    assert not completed & {request.call_id for request in model.requests}
    await assert_has_texts(runs, id)


async def one_step(runs: RunService, id: str) -> bool:
    """Runs until the next node has finished; whether the whole run has."""
    async with aclosing(runs.run(id)) as events:
        async for event in events:
            if isinstance(event, Answer) or event.state == "finished":
                return isinstance(event, Answer)
    raise AssertionError("a run ends with its answer")


@pytest.mark.nightly
async def test_repeated_pruning_during_a_run_changes_nothing(runs: RunService) -> None:
    _, expected = await finished(runs)
    id = await runs.start(RunRequest(question=QUESTION, method="par-rag"))
    while not await one_step(runs, id):
        await prune(runs, older_than=None, keep_last=1)
    answer = await runs.answer(id)
    assert replace(answer, thread="", checkpoint="") == replace(expected, thread="", checkpoint="")


async def test_prune_removes_unneeded_texts(runs: RunService) -> None:
    id, _ = await finished(runs)
    before = {table: count(runs, table, id) for table in tables(runs)}
    gone = await prune(runs, older_than=None, keep_last=1)
    after = {table: count(runs, table, id) for table in tables(runs)}
    assert after["checkpoints"] == 1
    assert after[tables(runs)[1]] == 0
    assert gone.checkpoints == before["checkpoints"] - 1
    if "checkpoint_blobs" in after:
        assert after["checkpoint_blobs"] <= len((await states(runs, id)).popitem()[1][0])


def tables(runs: RunService) -> tuple[str, ...]:
    return CHECKPOINT_TABLES[runs.store.engine.dialect.name]


@pytest.mark.parametrize("state", ["done", pytest.param("running", marks=pytest.mark.nightly)])
async def test_prune_removes_old_runs_of_one_owner_with_their_texts(
    runs: RunService, tmp_path: Path, database_url: str | None, state: ThreadState
) -> None:
    """Also one whose process was killed."""
    old, _ = await finished(runs)
    await runs.store.threads.set_state(old, state, at="2020-01-01T00:00:00.000+00:00")
    young, answer = await finished(runs)
    lonely = await runs.store.archive.keep(["nobody names this"])
    assert await prune(runs, older_than=3600, keep_last=None) == PruneReport(threads=1, checkpoints=0, texts=1)
    with pytest.raises(UnknownName):
        await runs.store.archive.load(lonely)
    with pytest.raises(UnknownName):
        await runs.answer(old)
    assert all(count(runs, table, old) == 0 for table in tables(runs))
    async with open_runs(own_settings(tmp_path, database_url)) as other:
        await finished(other)
        await prune(other, older_than=-1, keep_last=1)
        assert await other.store.threads.list_newest() == []
    assert await runs.answer(young) == answer
    await assert_has_texts(runs, young)
