"""A model server that becomes unavailable during runs: each ends with an error, and resumes without a repeated call."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import kill as kills
import pytest
from fault_scenarios import IRCOT
from four_hops import Shelf
from recording_proxy import Said, proxying
from scripted_backend import Scripted

from sleuth.agents.llm.client import LLMClient
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings

RUNS, BEFORE = 20, 60


@dataclass
class Away(Scripted):
    """A model server that refuses every request while it is `away`."""

    away: bool = False

    async def say(self, method: str, path: str, body: bytes) -> Said:
        return Said(503, b'{"error": {"message": "loading"}}') if self.away else await super().say(method, path, body)


async def ended(runs: RunService, thread: str) -> Answer | ModelUnavailable:
    try:
        return await last_answer(runs.run(thread))
    except ModelUnavailable as error:
        return error


@pytest.mark.nightly
async def test_model_server_is_started_again_in_the_middle_of_twenty_runs(tmp_path: Path) -> None:
    backend, settings = Away(IRCOT.script), Settings(home=tmp_path, embedder="none")
    async with (
        proxying(backend) as proxy,
        LLMClient.open(settings.model_copy(update={"model_url": proxy.url})) as model,
        open_store(settings) as store,
    ):
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        expected = await ended(runs, await runs.start(IRCOT.question, IRCOT.method))
        assert isinstance(expected, Answer)
        first = len(proxy.calls)
        threads = [await runs.start(IRCOT.question, IRCOT.method) for _ in range(RUNS)]
        begun = [asyncio.create_task(ended(runs, thread)) for thread in threads]
        while len(proxy.calls) < first + BEFORE:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.001)
        backend.away = True
        errors = [what for what in await asyncio.gather(*begun) if isinstance(what, ModelUnavailable)]
        assert errors
        assert all(proxy.url in str(error) for error in errors)
        done = kills.committed(settings, set(proxy.ids(first)))
        assert done
        backend.away, middle = False, len(proxy.calls)
        for answer in await asyncio.gather(*(ended(runs, thread) for thread in threads)):
            assert isinstance(answer, Answer)
            assert kills.essence(answer.to_json()) == kills.essence(expected.to_json())
    again = proxy.ids(middle)
    assert not done & set(again), "a call that had completed was sent again"
    assert len(again) == len(set(again))
