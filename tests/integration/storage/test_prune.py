"""Pruning: whatever checkpoint is kept still says what it said, and can be forked and resumed."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from four_hops import QUESTION, InProcess, Shelf
from sqlalchemy import text

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import export, fork, hashes_in, history
from sleuth.graphs.runs.pruning import WRITES, Pruned, prune
from sleuth.graphs.runs.service import Runs, Services, checkpoint_id
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.errors import UnknownName
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration


@pytest.fixture
async def runs(tmp_path: Path, database_url: str | None) -> AsyncIterator[Runs]:
    settings = Settings(home=tmp_path / "home", database_url=database_url, owner=uuid.uuid4().hex)
    async with open_store(settings) as store:
        yield Runs(store, Services(model=InProcess(), retriever=Shelf()))


async def finished(runs: Runs) -> tuple[str, Answer]:
    id = await runs.start(QUESTION, "par-rag")
    return id, await last_answer(runs.run(id))


async def branched(runs: Runs) -> tuple[str, set[str]]:
    """A run with three branches: the first, one that went to the same end, one that was changed and stands half-way.

    Returns the thread, and the calls of that last branch that have completed.
    """
    id, _ = await finished(runs)
    trunk = await history(runs, id)
    await fork(runs, id, at=trunk[len(trunk) // 2].checkpoint)
    await last_answer(runs.run(id))
    planned = next(moment for moment in reversed(trunk) if moment.node == ["plan"])
    await fork(runs, id, at=planned.checkpoint, changes={"plan": {"4": None, "5": None}})
    model = InProcess(hold_at=4)
    running = asyncio.create_task(last_answer(Runs(runs.store, Services(model=model, retriever=Shelf())).run(id)))
    await model.holding.wait()
    await asyncio.sleep(0.3)  # what was answered beside it is committed
    running.cancel()
    await asyncio.wait([running])
    return id, {request.call_id for request in model.requests if request is not model.requests[3]}


async def states(runs: Runs, id: str) -> dict[str, tuple[dict[str, Any], tuple[str, ...]]]:
    """Every checkpoint's whole state and what comes next."""
    thread = await runs.store.threads.get(id)
    found = runs.graph(thread).aget_state_history(runs.config(thread))
    return {checkpoint_id(state): (state.values, state.next) async for state in found}


async def assert_texts_are_there(runs: Runs, id: str) -> None:
    exported = await export(runs, id)
    assert exported["texts"], "a run names passages and prompts"
    assert hashes_in(exported["state"]) <= exported["texts"].keys()


def count(runs: Runs, table: str, id: str) -> int:
    with runs.store.engine.connect() as connection:
        return int(connection.scalar(text(f"SELECT count(*) FROM {table} WHERE thread_id = :id"), {"id": id}) or 0)


@pytest.mark.parametrize("keep_last", [1, 3, 20])
async def test_kept_checkpoints_say_what_they_said(runs: Runs, keep_last: int) -> None:
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
    await assert_texts_are_there(runs, id)
    assert (await prune(runs, older_than=None, keep_last=keep_last)).checkpoints == 0


async def test_every_kept_checkpoint_can_be_forked_to_the_same_end(runs: Runs) -> None:
    id, answer = await finished(runs)
    await prune(runs, older_than=None, keep_last=6)
    kept = [moment.checkpoint for moment in await history(runs, id)]
    for at in kept[::2]:
        await fork(runs, id, at=at)
        again = await last_answer(runs.run(id))
        assert replace(again, checkpoint="") == replace(answer, checkpoint="")
    with pytest.raises(UnknownName, match="no checkpoint"):
        await fork(runs, id, at="1f000000-0000-6000-8000-000000000000")


@pytest.mark.parametrize("keep_last", [1, 3])
async def test_a_run_that_stands_half_way_goes_on_after_a_prune(runs: Runs, keep_last: int) -> None:
    """Calls that had completed are still not made again: their results are kept with the latest checkpoint."""
    id, completed = await branched(runs)
    twin, _ = await branched(runs)
    expected = await last_answer(runs.run(twin))
    await prune(runs, older_than=None, keep_last=keep_last)
    model = InProcess()
    answer = await last_answer(Runs(runs.store, Services(model=model, retriever=Shelf())).run(id))
    assert replace(answer, thread="", checkpoint="") == replace(expected, thread="", checkpoint="")
    assert completed
    assert not completed & {request.call_id for request in model.requests}
    await assert_texts_are_there(runs, id)


async def one_step(runs: Runs, id: str) -> bool:
    """Runs until the next node has finished; whether the whole run has."""
    async with aclosing(runs.run(id)) as events:
        async for event in events:
            if isinstance(event, Answer) or event.state == "finished":
                return isinstance(event, Answer)
    raise AssertionError("a run ends with its answer")


async def test_pruning_again_and_again_on_the_way_changes_nothing(runs: Runs) -> None:
    _, expected = await finished(runs)
    id = await runs.start(QUESTION, "par-rag")
    while not await one_step(runs, id):
        await prune(runs, older_than=None, keep_last=1)
    answer = await runs.answer(id)
    assert replace(answer, thread="", checkpoint="") == replace(expected, thread="", checkpoint="")


async def test_what_no_checkpoint_needs_goes(runs: Runs) -> None:
    id, _ = await finished(runs)
    before = {table: count(runs, table, id) for table in tables(runs)}
    gone = await prune(runs, older_than=None, keep_last=1)
    after = {table: count(runs, table, id) for table in tables(runs)}
    assert after["checkpoints"] == 1
    assert after[WRITES[runs.store.engine.dialect.name]] == 0
    assert gone.checkpoints == before["checkpoints"] - 1
    if "checkpoint_blobs" in after:
        assert after["checkpoint_blobs"] <= len((await states(runs, id)).popitem()[1][0])


def tables(runs: Runs) -> list[str]:
    shared = ["checkpoints", WRITES[runs.store.engine.dialect.name]]
    return shared if runs.store.engine.dialect.name == "sqlite" else [*shared, "checkpoint_blobs"]


async def test_old_runs_go_with_their_texts_and_others_stay(runs: Runs) -> None:
    old, _ = await finished(runs)
    await runs.store.threads.mark(old, "done", at="2020-01-01T00:00:00.000+00:00")
    young, answer = await finished(runs)
    lonely = await runs.store.archive.keep(["nobody names this"])
    assert await prune(runs, older_than=3600, keep_last=None) == Pruned(threads=1, checkpoints=0, texts=1)
    with pytest.raises(UnknownName):
        await runs.store.archive.load(lonely)
    with pytest.raises(UnknownName):
        await runs.answer(old)
    assert all(count(runs, table, old) == 0 for table in tables(runs))
    assert await runs.answer(young) == answer
    await assert_texts_are_there(runs, young)


async def test_prune_removes_an_old_run_whose_process_was_killed(runs: Runs) -> None:
    old, _ = await finished(runs)
    await runs.store.threads.mark(old, "running", at="2020-01-01T00:00:00.000+00:00")
    assert (await prune(runs, older_than=3600, keep_last=None)).threads == 1
    assert await runs.store.threads.newest() == []


async def test_the_runs_of_other_owners_stay_whole(runs: Runs, tmp_path: Path, database_url: str | None) -> None:
    id, _ = await finished(runs)
    before = await states(runs, id)
    settings = Settings(home=tmp_path / "home", database_url=database_url, owner=uuid.uuid4().hex)
    async with open_store(settings) as store:
        other = Runs(store, runs.services)
        await finished(other)
        await prune(other, older_than=-1, keep_last=1)
        assert await store.threads.newest() == []
    assert await states(runs, id) == before
    await assert_texts_are_there(runs, id)
