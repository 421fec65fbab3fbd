"""Runs in SQLite and in Postgres: started, run, resumed, looked at, forked, leased."""

import asyncio
import multiprocessing
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from four_hops import QUESTION, InProcess, Shelf

from sleuth.agents.model import Reply, Request
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.persistence.threads import LONGEST_NAME
from sleuth.graphs.runs.history import export, fork, history
from sleuth.graphs.runs.service import Runs, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.errors import ModelUnavailable, RunError, ThreadBusy, UnknownName, UsageError
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration


def services(model: InProcess) -> Services:
    return Services(model=model, retriever=Shelf())


def told(answer: Answer) -> Answer:
    """An answer without its place in the store."""
    return replace(answer, thread="", checkpoint="")


@pytest.fixture
def stored(tmp_path: Path, database_url: str | None) -> Settings:
    """A store of its own: in Postgres an owner of its own."""
    return Settings(home=tmp_path / "home", database_url=database_url, owner=uuid.uuid4().hex)


@pytest.fixture
async def runs(stored: Settings) -> AsyncIterator[Runs]:
    async with open_store(stored) as store:
        yield Runs(store, services(InProcess()))


async def test_a_run_ends_and_is_there_for_the_next_process(runs: Runs, stored: Settings) -> None:
    id = await runs.start(QUESTION, "par-rag")
    answer = await last_answer(runs.run(id))
    assert (answer.status, answer.text, len(answer.notes)) == ("answered", "the fair at Brindlecote", 5)
    async with open_store(stored) as store:
        again = Runs(store)
        assert await again.answer(id) == answer
        assert await last_answer(again.run(id)) == answer, "a finished run needs no services"
        assert [(thread.id, thread.status) for thread in await store.threads.newest()] == [(id, "done")]


async def test_a_cancelled_run_goes_on_where_it_stood(runs: Runs, stored: Settings) -> None:
    uninterrupted = await last_answer(runs.run(await runs.start(QUESTION, "par-rag")))
    stuck = InProcess(hold_at=6)
    held = Runs(runs.store, services(stuck))
    id = await held.start(QUESTION, "par-rag")
    running = asyncio.create_task(last_answer(held.run(id)))
    await stuck.holding.wait()
    await asyncio.sleep(0.3)  # the other replies of that moment are committed
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await runs.store.threads.get(id)).status == "interrupted"
    with pytest.raises(RunError, match=f"sleuth resume {id}"):
        await runs.answer(id)
    model = InProcess()
    async with open_store(stored) as store:
        answer = await last_answer(Runs(store, services(model)).run(id))
    assert told(answer) == told(uninterrupted)
    ids = {request.call_id for request in stuck.requests[:5]} & {request.call_id for request in model.requests}
    assert not ids, "calls that had completed were made again"
    assert len(stuck.requests) + len(model.requests) == uninterrupted.cost["calls"] + 1


class Failing(InProcess):
    async def call(self, request: Request) -> Reply:
        raise ModelUnavailable("The server is away.")


async def test_a_failed_run_says_why_and_goes_on(runs: Runs) -> None:
    id = await runs.start(QUESTION, "par-rag")
    with pytest.raises(ModelUnavailable):
        await last_answer(Runs(runs.store, services(Failing())).run(id))
    thread = await runs.store.threads.get(id)
    assert (thread.status, thread.problem) == ("failed", "The server is away.")
    assert (await last_answer(runs.run(id))).status == "answered"


async def test_history_names_every_step_and_its_changes(runs: Runs) -> None:
    id = await runs.start(QUESTION, "par-rag")
    await last_answer(runs.run(id))
    moments = await history(runs, id)
    assert [moments[0].node, moments[0].next] == [["answer"], []]
    assert [moment.parent for moment in moments[:-1]] == [moment.checkpoint for moment in moments[1:]]
    nodes = [name for moment in reversed(moments) for name in moment.node]
    assert nodes[:5] == ["plan", "retrieve_coarse", "draft", "retrieve_fine", "review"]
    assert set(moments[0].changed) == {"verdict", "calls"}
    exported = await export(runs, id)
    prompts = {call["prompt"] for call in exported["state"]["calls"].values()}
    assert prompts <= exported["texts"].keys()
    assert QUESTION in exported["texts"][next(iter(exported["state"]["calls"].values()))["prompt"]]


async def test_a_fork_with_a_changed_plan_runs_the_new_plan(runs: Runs) -> None:
    id = await runs.start(QUESTION, "par-rag")
    first = await last_answer(runs.run(id))
    planned = next(moment for moment in await history(runs, id) if moment.node == ["plan"])
    model = InProcess()
    forking = Runs(runs.store, services(model))
    made = await fork(forking, id, at=planned.checkpoint, changes={"plan": {"5": None, "4": None}})
    assert made["thread"] == id
    answer = await last_answer(forking.run(id))
    assert len(answer.notes) == 3
    assert {request.role for request in model.requests} == {"drafter", "reviewer", "refiner", "answerer"}
    assert made["checkpoint"] in {moment.checkpoint for moment in await history(runs, id)}
    assert first.checkpoint in {moment.checkpoint for moment in await history(runs, id)}, "the first branch stays"


async def test_a_plain_fork_runs_the_same_again(runs: Runs) -> None:
    id = await runs.start(QUESTION, "par-rag")
    first = await last_answer(runs.run(id))
    for moment in (await history(runs, id))[1:-1:12]:
        await fork(runs, id, at=moment.checkpoint)
        assert told(await last_answer(runs.run(id))) == told(first)


async def test_a_fork_into_another_method_takes_the_notes_along(runs: Runs) -> None:
    id = await runs.start(QUESTION, "par-rag")
    await last_answer(runs.run(id))
    at = next(moment for moment in await history(runs, id) if moment.node == ["refine"])
    made = await fork(runs, id, at=at.checkpoint, into="plain-rag")
    thread = await runs.store.threads.get(made["thread"])
    assert (thread.method, thread.parent, thread.parent_checkpoint) == ("plain-rag", id, at.checkpoint)
    handed_over = (await history(runs, made["thread"]))[0].changed["notes"]
    assert list(handed_over) == [f"handed over {number}" for number in range(1, len(handed_over) + 1)]


async def test_what_is_not_there_is_named_with_the_nearest(runs: Runs) -> None:
    id = await runs.start(QUESTION, "par-rag", thread="pellowrig" + uuid.uuid4().hex[:8])
    await last_answer(runs.run(id))
    with pytest.raises(UnknownName, match=f"Did you mean {id}"):
        await last_answer(runs.run(id[:-1]))
    newest = (await history(runs, id))[0].checkpoint
    with pytest.raises(UnknownName, match=f"Did you mean {newest}"):
        await fork(runs, id, at=newest[:-1])
    with pytest.raises(UnknownName, match="Did you mean notes"):
        await fork(runs, id, at=newest, changes={"note": {}})
    with pytest.raises(UsageError, match="used already"):
        await runs.start(QUESTION, "par-rag", thread=id)


async def test_owners_do_not_see_each_other(runs: Runs, stored: Settings) -> None:
    id = await runs.start(QUESTION, "par-rag")
    await last_answer(runs.run(id))
    async with open_store(stored.model_copy(update={"owner": uuid.uuid4().hex})) as store:
        assert await store.threads.newest() == []
        with pytest.raises(UnknownName):
            await history(Runs(store), id)


async def test_a_resumed_run_keeps_its_budget_until_it_gets_another(runs: Runs) -> None:
    id = await runs.start(QUESTION, "par-rag", budget=Budget(max_calls=3))
    assert (await last_answer(runs.run(id))).status == "out_of_budget"
    first = (await history(runs, id))[-2].checkpoint
    await fork(runs, id, at=first)
    assert (await last_answer(runs.run(id))).status == "out_of_budget"
    await fork(runs, id, at=first)
    assert (await last_answer(runs.run(id, budget=Budget()))).status == "answered"


async def test_two_processes_never_run_one_thread(runs: Runs, stored: Settings) -> None:
    id = await runs.start(QUESTION, "par-rag")
    method = multiprocessing.get_context("forkserver")
    here, there = method.Pipe()
    other = method.Process(target=run_and_stay, args=(stored, id, there))
    other.start()
    try:
        assert await asyncio.to_thread(here.poll, 60)
        with pytest.raises(ThreadBusy, match=f"Thread {id} is being run by "):
            await last_answer(runs.run(id))
    finally:
        other.kill()
        await asyncio.to_thread(other.join)
    assert (await freed(runs, id)).status == "answered"


@pytest.mark.parametrize("method", ["par-rag", "auto"])
async def test_many_runs_at_once(runs: Runs, method: str) -> None:
    """More than a pool of connections has: none may be held for as long as a run takes."""
    names = [await runs.start(QUESTION, method) for _ in range(20)]
    answers = await asyncio.gather(*(last_answer(runs.run(name)) for name in names))
    assert [answer.thread for answer in answers] == names
    assert {answer.status for answer in answers} == {"answered"}


async def test_whoever_waits_for_a_lease_and_is_cancelled_does_not_hold_it(runs: Runs) -> None:
    """At any moment: also before the thread that asks for it has had its turn."""
    for wait in [0.0, 0.0, 0.001, 0.002, 0.005, 0.01, 0.02] * 5:
        taking = asyncio.create_task(hold(runs, "monday", seconds=60))
        await asyncio.sleep(wait)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        await hold(runs, "monday")


async def hold(runs: Runs, id: str, seconds: float = 0.0) -> None:
    async with runs.store.leases.hold(id):
        await asyncio.sleep(seconds)


@pytest.mark.postgres
async def test_a_lost_connection_is_made_anew_with_what_it_held(tmp_path: Path, postgres_url: str) -> None:
    settings = Settings(home=tmp_path, database_url=postgres_url, owner=uuid.uuid4().hex)
    async with open_store(settings) as store, open_store(settings) as elsewhere:
        async with store.leases.hold(f"{settings.owner}-1"):
            with store.engine.connect() as connection:
                gone = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
                assert list(connection.exec_driver_sql(gone))
            async with store.leases.hold(f"{settings.owner}-2"):
                for held in ("1", "2"):
                    with pytest.raises(ThreadBusy):
                        async with elsewhere.leases.hold(f"{settings.owner}-{held}"):
                            pytest.fail("two hold it")
        for held in ("1", "2"):
            async with elsewhere.leases.hold(f"{settings.owner}-{held}"):
                pass


async def freed(runs: Runs, id: str) -> Answer:
    """Runs a thread as soon as it can be: Postgres needs a moment to see that a client was killed."""
    for _ in range(50):
        try:
            return await last_answer(runs.run(id))
        except ThreadBusy:
            await asyncio.sleep(0.1)
    raise AssertionError("the lease of a killed process stays")


def run_and_stay(settings: Settings, id: str, pipe: Connection) -> None:
    asyncio.run(_run_and_stay(settings, id, pipe))


async def _run_and_stay(settings: Settings, id: str, pipe: Connection) -> None:
    model = InProcess(hold_at=1)
    async with open_store(settings) as store:
        running = asyncio.create_task(last_answer(Runs(store, services(model)).run(id)))
        await model.holding.wait()
        pipe.send("held")
        await running


async def test_a_run_of_the_longest_name_has_hops_like_any_other(runs: Runs) -> None:
    name = "n" * LONGEST_NAME
    answer = await last_answer(runs.run(await runs.start(QUESTION, "auto", thread=name)))
    hops = await runs.store.threads.hops_of(name)
    assert answer.thread == name
    assert hops
    assert all(len(hop.id) <= LONGEST_NAME and hop.part_of == name for hop in hops)
    assert len({hop.id for hop in hops}) == len(hops)
