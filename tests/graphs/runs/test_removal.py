"""Removal of runs: the whole tree of sub-runs goes, with the texts that no other run names."""

import pytest
from scenes import Chain, RunsFor, finish
from sqlalchemy import update

from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence.tables import threads
from sleuth.graphs.persistence.thread import Origin
from sleuth.graphs.runs.pruning import preview_prune, prune, remove_runs
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.web_pages.page import PageText


async def tree(runs: RunService, root: str, *, secret: str = "") -> list[str]:
    """Store a chat with a sub-run that has a sub-run of its own, each with a page; return their ids."""
    ids = [root, f"{root}.1", f"{root}.1.1"]
    for at, (id, method) in enumerate(zip(ids, ("chat", "auto", "plain-rag"), strict=True)):
        page = PageText(id=id, name="page", text=f"{secret}{id}")
        shared = PageText(id="shared", name="page", text="A text of several runs.")
        origin = Origin(parent=ids[at - 1], parent_checkpoint="", subrun=1) if at else None
        await runs.start(
            RunRequest(question=f"Who built {id}?", method=method, thread=id, pages=[page, shared]), origin=origin
        )
    return ids


async def texts_of(runs: RunService, *ids: str) -> list[str]:
    return [name for id in ids for name in (await runs.store.threads.get(id)).options.pages.texts]


async def left(runs: RunService) -> list[str]:
    return sorted(thread.id for thread in await runs.store.threads.list_newest())


async def test_removed_run_takes_its_whole_tree_and_texts(runs: RunService) -> None:
    gone, kept = await tree(runs, "talk", secret="secret "), await tree(runs, "other")
    names = await texts_of(runs, *gone)
    only, shared = [names[0], names[2], names[4]], names[1]
    assert [thread.id for thread in await remove_runs(runs, "talk")] == gone
    assert await left(runs) == sorted(kept)
    for name in only:
        with pytest.raises(UnknownName):
            await runs.store.archive.load([name])
    assert await runs.store.archive.load([shared, *await texts_of(runs, *kept)])
    await remove_runs(runs, "other")
    with pytest.raises(UnknownName):
        await runs.store.archive.load([shared])


async def test_texts_of_a_finished_run_go_but_not_those_of_its_fork(
    runs_with: RunsFor, chain: Chain, runs: RunService
) -> None:
    await runs.start(RunRequest(question=chain.question, method="par-rag", thread="one"))
    await runs.start(RunRequest(question=chain.question, method="par-rag", thread="two", budget=Budget(max_calls=50)))
    for id in ("one", "two"):
        await finish(runs, id)
    before = await runs.answer("two")
    await remove_runs(runs, "one")
    assert await runs.answer("two") == before
    assert (await prune(runs, older_than=None, keep_last=99)).texts == 0
    await remove_runs(runs, "two")
    assert (await prune(runs, older_than=None, keep_last=99)).texts == 0


async def test_texts_stay_while_another_run_is_running(runs: RunService) -> None:
    ids = await tree(runs, "talk")
    await runs.start(RunRequest(question="Who?", method="plain-rag", thread="busy"))
    names = await texts_of(runs, *ids)
    async with runs.store.locks.hold("busy"):
        await runs.store.threads.set_state("busy", "running", at="2026-01-01T00:00:00.000+00:00")
        await remove_runs(runs, "talk")
        assert await runs.store.archive.load(names)
    assert await left(runs) == ["busy"]


async def test_subrun_is_removed_alone_only_without_its_run(runs: RunService) -> None:
    ids = await tree(runs, "talk")
    for id in ids[1:]:
        with pytest.raises(UsageError, match="is part of run"):
            await remove_runs(runs, id)
    await runs.store.threads.remove("talk")
    assert [thread.id for thread in await remove_runs(runs, "talk.1")] == ids[1:]


@pytest.mark.parametrize("young", ["talk", "talk.1", "talk.1.1", ""])
async def test_prune_takes_all_levels_of_a_tree_or_none(runs: RunService, young: str) -> None:
    ids = await tree(runs, "talk")
    with runs.store.engine.begin() as connection:
        old = update(threads).where(threads.c.id != young)
        connection.execute(old.values(updated_at="2020-01-01T00:00:00.000+00:00"))
    planned = await preview_prune(runs, older_than=3600, keep_last=None)
    assert [thread.id for thread in planned.threads] == ([] if young else ids)
    assert (await prune(runs, older_than=3600, keep_last=None)).threads == (0 if young else 3)
    assert await left(runs) == (sorted(ids) if young else [])
