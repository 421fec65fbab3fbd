"""vLLM is killed in the middle of twenty runs and restarted: each run resumes and repeats no call."""

import asyncio
import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import kill as kills
import pytest
from four_hops import Shelf
from process import free_port
from windows import Sweep

from sleuth.agents.llm.client import LLMClient
from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.studio.model_server import server
from sleuth.studio.model_server.flags import ServeOptions
from sleuth.tools.errors import ModelError
from sleuth.tools.settings import Settings

pytestmark = [
    pytest.mark.integration,
    pytest.mark.vllm,
    pytest.mark.faults,
    pytest.mark.timeout(3600),
    pytest.mark.usefixtures("vllm_installed"),
]

RUNS, BEFORE_THE_KILL = 20, 25
METHODS = ("plain-rag", "ircot", "par-rag", "self-ask")


@dataclass
class Counted:
    """A model, and the calls that it was asked for and has answered."""

    model: Model
    asked: Counter[str] = field(default_factory=Counter)
    answered: list[str] = field(default_factory=list)

    @property
    def context_window(self) -> int:
        return self.model.context_window

    async def call(self, request: Request) -> Reply:
        self.asked[request.call_id] += 1
        reply = await self.model.call(request)
        self.answered.append(request.call_id)
        return reply

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return await self.model.count_tokens(messages, role=role)


async def _ended(runs: RunService, thread: str) -> Answer | ModelError:
    try:
        return await last_answer(runs.run(thread))
    except ModelError as error:
        return error


async def test_vllm_is_killed_in_the_middle_of_twenty_runs(model_home: Path) -> None:
    sweep = Sweep("vllm-restart", 1)
    for once in sweep.left():
        sweep.passed(once, **await killed_and_started_again(model_home))
    sweep.end()


async def killed_and_started_again(model_home: Path) -> dict[str, int]:
    """Counts: runs that ended with an error at the kill, and calls committed before it."""
    options = ServeOptions(port=free_port(), dtype="float32", threads=1)
    try:
        first = await server.serve(model_home, options, print)
        settings = Settings(home=model_home / "home", model_url=first.url, timeout=900)
        async with open_store(settings) as store, LLMClient.open(settings) as gateway:
            model = Counted(gateway)
            runs = RunService(store, Services(model=model, retriever=Shelf()))
            threads = [f"r{n}" for n in range(RUNS)]
            for n, thread in enumerate(threads):
                await runs.start(f"Who built light number {n}?", METHODS[n % len(METHODS)], thread=thread)
            begun = [asyncio.create_task(_ended(runs, thread)) for thread in threads]
            while len(model.answered) < BEFORE_THE_KILL and not all(task.done() for task in begun):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            os.kill(first.pid, signal.SIGKILL)
            ended = await asyncio.gather(*begun)
            broken = [thread for thread, what in zip(threads, ended, strict=True) if isinstance(what, ModelError)]
            assert len(broken) > RUNS // 4
            assert all(first.url in str(what) for what in ended if isinstance(what, ModelError))
            before = kills.committed(settings, set(model.asked))
            assert len(before) >= BEFORE_THE_KILL

            again = await server.serve(model_home, options, print)
            assert again.url == first.url
            model.asked.clear()
            ended = await asyncio.gather(*(_ended(runs, thread) for thread in threads))
        assert all(isinstance(what, Answer) for what in ended), ended
        assert model.asked
        assert not before & model.asked.keys()
        assert max(model.asked.values()) == 1
        return {"broken": len(broken), "committed": len(before)}
    finally:
        await server.stop(model_home)
