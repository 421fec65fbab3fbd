"""Runs start, stop, resume from the last checkpoint, and never repeat a completed call."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from scenes import Chain, Replying, ask, down_once, finish, sent
from sqlalchemy import text
from sqlalchemy.sql.dml import UpdateBase

from sleuth.agents.model import Reply, Request
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Step
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.persistence.threads import Threads
from sleuth.graphs.runs.history import list_checkpoints
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable, RunError, StoreTooNew, ThreadBusy, UsageError

CALLS = 7
"""Of a chain of two hops."""


async def test_answer_json_has_the_documented_fields(runs: RunService, chain: Chain) -> None:
    answer = (await ask(runs, chain.question)).to_json()
    assert list(answer) == [
        *("thread", "checkpoint", "method", "question", "status", "text", "citations", "notes", "cost", "seconds"),
        "warnings",
    ]
    assert set(answer["citations"][0]) == {"passage", "document", "title", "quote", "start", "end"}
    assert [set(note) for note in answer["notes"]] == [{"question", "finding", "passages"}] * 2
    assert answer["cost"]["calls"] == CALLS == sum(node["calls"] for node in answer["cost"]["nodes"].values())
    assert set(answer["cost"]["nodes"]) == {"plan", "draft", "review", "refine", "answer"}
    assert answer["checkpoint"] == (await list_checkpoints(runs, answer["thread"]))[0].checkpoint


async def test_finished_run_returns_its_answer_without_calls(runs: RunService, chain: Chain, model: Replying) -> None:
    first = await ask(runs, chain.question)
    assert [event async for event in runs.run(first.thread)] == [first]
    assert len(model.requests) == CALLS


async def test_drain_interrupts_a_run_after_its_present_step(runs: RunService, chain: Chain, model: Replying) -> None:
    id, control = await runs.start(RunRequest(question=chain.question, method="par-rag")), RunControl()
    with pytest.raises(GraphDrained):
        async for event in runs.run(id, control=control):
            if isinstance(event, Step) and (event.node, event.state) == ("draft", "started"):
                control.request_drain()
    assert (await runs.store.threads.get(id)).state == "interrupted"
    assert 1 < len(model.requests) < CALLS
    assert (await finish(runs, id)).cost["calls"] == CALLS == len(model.requests)


async def test_run_resumed_after_any_model_failure_repeats_no_call(
    runs_with: Any, chain: Chain, model: Replying
) -> None:
    expected = await ask(runs_with(model), chain.question)
    for at in range(1, CALLS + 1, 2):
        failing = Replying(down_once(chain.reply_to, at))
        runs = runs_with(failing)
        id = await runs.start(RunRequest(question=chain.question, method="par-rag"))
        with pytest.raises(ModelUnavailable):
            await finish(runs, id)
        thread = await runs.store.threads.get(id)
        assert (thread.state, thread.problem) == ("failed", "It is down: start it.")
        with pytest.raises(RunError, match=f"no answer yet: `sleuth resume {id}`"):
            await runs.answer(id)
        answer = await finish(runs, id)
        del failing.requests[at - 1]
        ids = [request.call_id for request in failing.requests]
        assert len(ids) == len(set(ids)) == CALLS
        assert sent(failing.requests) == sent(model.requests)
        assert (answer.text, answer.citations, answer.cost) == (expected.text, expected.citations, expected.cost)
        assert (await runs.store.threads.get(id)).problem == ""


async def test_same_question_gives_same_requests_in_each_thread(
    runs: RunService, chain: Chain, model: Replying
) -> None:
    for _ in range(2):
        await ask(runs, chain.question)
    assert sent(model.requests[:CALLS]) == sent(model.requests[CALLS:])
    assert not {each.call_id for each in model.requests[:CALLS]} & {each.call_id for each in model.requests[CALLS:]}
    seeds = [request.sampling.seed for request in model.requests[:CALLS]]
    assert len(set(seeds)) == CALLS


async def test_other_settings_give_other_seeds(runs: RunService, chain: Chain, model: Replying) -> None:
    for values in ({}, {"top_k": "9"}):
        await ask(runs, chain.question, "plain-rag", values=values)
    first, second = model.requests
    assert first.messages == second.messages
    assert first.sampling.seed != second.sampling.seed


async def test_thread_name_is_used_once(runs: RunService) -> None:
    for name in ("mine", "user:42", "Ünal.2", "a@b-c_d"):
        assert await runs.start(RunRequest(question="?", method="plain-rag", thread=name)) == name
    with pytest.raises(RunError, match="Thread mine was used already: `sleuth resume mine` resumes it"):
        await runs.start(RunRequest(question="?", method="plain-rag", thread="mine"))


@pytest.mark.parametrize("name", ["a/b", "../etc", "a b", "\x1b[31m", "a\n", "n" * 101])
async def test_name_that_fits_no_address_is_refused(runs: RunService, name: str) -> None:
    with pytest.raises(UsageError, match=r"is not a valid run name\. Use 1 to 100 letters, digits and \. _ @ : -\."):
        await runs.start(RunRequest(question="?", method="plain-rag", thread=name))


async def test_run_is_executed_once_at_a_time(runs: RunService, chain: Chain) -> None:
    id = await runs.start(RunRequest(question=chain.question, method="plain-rag"))
    async with aclosing(runs.run(id)) as first:
        await anext(first)
        with pytest.raises(ThreadBusy, match=f"Thread {id} is being run by process"):
            await finish(runs, id)
    assert (await finish(runs, id)).status == "answered"


async def test_run_without_consumer_is_interrupted(runs: RunService, chain: Chain, model: Replying) -> None:
    id = await runs.start(RunRequest(question=chain.question, method="par-rag"))
    async with aclosing(runs.run(id)) as events:
        async for event in events:
            if isinstance(event, Step) and event.node == "draft":
                break
    assert (await runs.store.threads.get(id)).state == "interrupted"
    assert (await finish(runs, id)).text == "1868"
    ids = [request.call_id for request in model.requests]
    assert len(ids) - len(set(ids)) <= 1, "only the call in flight may go out again"


class Hanging(Replying):
    """Never comes back from its third call."""

    def __init__(self, answer: Callable[[Request], Any]) -> None:
        super().__init__(answer)
        self.hangs = asyncio.Event()

    async def call(self, request: Request) -> Reply:
        if len(self.requests) == 2:
            self.hangs.set()
            await asyncio.Event().wait()
        return await super().call(request)


class SlowDisk(Threads):
    """Writes a state only once it may."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.engine, store.threads.owner, store.locks)
        self.writes, self.may = asyncio.Event(), threading.Event()
        self._loop = asyncio.get_running_loop()

    def _write(self, statement: UpdateBase, fenced: str) -> None:
        self._loop.call_soon_threadsafe(self.writes.set)
        self.may.wait()
        super()._write(statement, fenced)


def written(store: Store) -> str:
    with store.engine.connect() as connection:
        return str(connection.scalar(text("SELECT state FROM sleuth_threads")))


async def test_run_cancelled_while_it_is_marked_running_is_interrupted(runs: RunService, chain: Chain) -> None:
    id = await runs.start(RunRequest(question=chain.question, method="plain-rag"))
    disk = SlowDisk(runs.store)
    running = asyncio.create_task(finish(RunService(replace(runs.store, threads=disk), runs.services), id))
    await disk.writes.wait()
    running.cancel()
    await asyncio.sleep(0)
    disk.may.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert written(runs.store) == "interrupted"
    assert (await finish(runs, id)).status == "answered"


async def test_run_cancelled_twice_is_locked_until_its_end_is_stored(runs_with: Any, chain: Chain) -> None:
    hanging = Hanging(chain.reply_to)
    runs = runs_with(hanging)
    id, disk = await runs.start(RunRequest(question=chain.question, method="par-rag")), SlowDisk(runs.store)
    disk.may.set()
    running = asyncio.create_task(finish(RunService(replace(runs.store, threads=disk), runs.services), id))
    await hanging.hangs.wait()
    disk.may.clear()
    disk.writes.clear()
    running.cancel()
    await disk.writes.wait()
    running.cancel()
    await asyncio.wait([running], timeout=0.2)
    assert await runs.store.locks.held([id]) == {id}
    disk.may.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert written(runs.store) == "interrupted"


@pytest.mark.parametrize("most", [pytest.param(n, marks=[pytest.mark.sweep] if n % 3 else []) for n in range(CALLS)])
async def test_run_out_of_budget_resumes_with_another(
    runs: RunService, chain: Chain, model: Replying, most: int
) -> None:
    id = await runs.start(RunRequest(question=chain.question, method="par-rag", budget=Budget(max_calls=most)))
    assert (await finish(runs, id)).status == "out_of_budget"
    assert (await finish(runs, id, budget=Budget(max_calls=most))).status == "out_of_budget"
    answer = await finish(runs, id, budget=Budget())
    assert (answer.status, answer.text, answer.cost["calls"]) == ("answered", "1868", CALLS)
    assert len(model.requests) == CALLS, "a call was sent again"
    assert await finish(runs, id, budget=Budget()) == answer, "an answer is final"
    assert "fork" in {moment.source for moment in await list_checkpoints(runs, id)}


async def test_checkpoint_of_newer_release_is_refused(runs: RunService, chain: Chain) -> None:
    id = (await ask(runs, chain.question, "plain-rag")).thread
    latest = (await list_checkpoints(runs, id))[1]
    thread = await runs.store.threads.get(id)
    values = (await runs.state(thread)).values
    assert "schema_version" not in values, "a state without a version has the first one"
    config = runs.config(thread, latest.checkpoint)
    await runs.graph(thread).aupdate_state(config, {"schema_version": 99}, as_node=latest.node[-1])
    for reading in (finish(runs, id), runs.answer(id), list_checkpoints(runs, id)):
        with pytest.raises(StoreTooNew, match=r"state version 99, this release reads up to 1\): upgrade sleuth"):
            await reading


async def test_reading_needs_no_services_but_running_does(store: Store, runs: RunService, chain: Chain) -> None:
    id = await runs.start(RunRequest(question=chain.question, method="plain-rag"))
    reader = RunService(store)
    with pytest.raises(RunError, match="opened for reading"):
        await finish(reader, id)
    answer = await finish(runs, id)
    assert await reader.answer(id) == answer
