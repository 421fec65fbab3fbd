"""The seconds of a run: by the wall clock, without pauses, the same at every reading."""

import asyncio
import time
from contextlib import aclosing

import pytest
from scenes import Chain, Replying, RunsFor, ask, finish

from sleuth.agents.model import Reply, Request
from sleuth.graphs.core.events import Step
from sleuth.graphs.runs.execution import seconds_at
from sleuth.graphs.runs.history import fork_run, list_checkpoints
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService


class Busy(Replying):
    """Claims 100 seconds for each call, and takes some milliseconds."""

    async def call(self, request: Request) -> Reply:
        await asyncio.sleep(0.02)
        return {**await super().call(request), "seconds": 100.0}


@pytest.fixture
def busy(runs_with: RunsFor, chain: Chain) -> RunService:
    return runs_with(Busy(chain.reply_to))


async def test_seconds_are_wall_clock_and_model_seconds_a_sum(busy: RunService, chain: Chain) -> None:
    began = time.time()
    answer = await ask(busy, chain.question)
    took = time.time() - began
    assert answer.seconds is not None and answer.cost["calls"] * 0.02 <= answer.seconds <= took
    assert answer.cost["model_seconds"] == 100 * answer.cost["calls"]
    assert "seconds" not in answer.cost
    assert answer.to_json()["seconds"] == answer.seconds
    assert (await busy.answer(answer.thread)).seconds == answer.seconds


async def test_seconds_leave_out_the_pause_before_a_resume(busy: RunService, chain: Chain) -> None:
    id, began = await busy.start(RunRequest(question=chain.question, method="par-rag")), time.time()
    async with aclosing(busy.run(id)) as events:
        async for event in events:
            if isinstance(event, Step) and (event.node, event.state) == ("draft", "finished"):
                break
    worked = time.time() - began
    state = await busy.graph(await busy.store.threads.get(id)).aget_state(busy.config(await busy.store.threads.get(id)))
    before = seconds_at(state)
    await asyncio.sleep(0.5)
    began = time.time()
    answer = await finish(busy, id)
    worked += time.time() - began
    assert before is not None and answer.seconds is not None
    assert 0 < before < answer.seconds <= worked


async def test_seconds_of_a_fork_are_those_of_its_path(busy: RunService, chain: Chain) -> None:
    first = await ask(busy, chain.question, "plain-rag")
    await asyncio.sleep(0.3)
    moments = await list_checkpoints(busy, id := first.thread)
    await fork_run(busy, id, at=moments[0].checkpoint)
    assert (await busy.answer(id)).seconds == first.seconds
    began = time.time()
    await fork_run(busy, id, at=moments[1].checkpoint)
    again = await finish(busy, id)
    assert first.seconds and again.seconds
    assert 0.02 <= again.seconds <= first.seconds + time.time() - began
