"""Stopping a run by any means ends its requests at the model server immediately."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx
import kill as kills
import pytest
from fault_injection import Weather
from fault_scenario_runs import EVERY, Instant
from fault_scenarios import Trial
from faulty_environment import HANGS, House, Run, housed
from faulty_server import Face, facing
from four_hops import QUESTION, Shelf, four_hops
from hashing_embedder import HashingEmbedder
from recording_proxy import Said
from scripted_backend import prompt_of
from serve_scene import client_of, upload

from sleuth.agents.llm.client import LLMClient
from sleuth.graphs.core.events import Delta
from sleuth.graphs.ingestion.graph import ingest
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.studio.server.app import create_app
from sleuth.tools.collection.collection import Collection
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

SLOTS = 2
"""Number of parallel calls in PAR-RAG's first wave."""
# Who is started in the background by a shell ignores interrupts, and so do its children.
SLEUTH = [
    sys.executable,
    "-c",
    "import signal; from sleuth.studio.cli.app import main; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); main()",
]
RUNS, STOPS, PASSAGES = 4, 3, 300


class Held(Instant):
    """Model that never returns a draft."""

    async def say(self, method: str, path: str, body: bytes) -> Said:
        said = await super().say(method, path, body)
        if b'"messages"' in body and b'"seed"' in body and prompt_of(_json(body)) == "drafter/draft":
            await asyncio.Event().wait()
        return said


def _json(body: bytes) -> Any:
    return httpx.Response(200, content=body).json()


@pytest.fixture
async def face() -> AsyncIterator[Face]:
    async with facing(Held(four_hops)) as opened:
        yield opened


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(300):
        while not holds():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


@asynccontextmanager
async def freed(face: Face) -> AsyncIterator[None]:
    """Wait until all slots are taken, and after the block until they are free: no reply ever comes to its end."""
    await until(lambda: face.open == SLOTS)
    yield
    await until(lambda: face.open == 0)


@pytest.mark.parametrize("heard", [False, True], ids=["whole", "streamed"])
async def test_cancelled_task_is_resumed(face: Face, tmp_path: Path, heard: bool) -> None:
    settings = Settings(home=tmp_path, model_url=face.url("one", Weather(0, 0.0)))
    async with LLMClient.open(settings) as model, open_store(settings) as store:
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        id = await runs.start(QUESTION, "par-rag")
        task = asyncio.create_task(last_answer(runs.run(id, listening=(lambda: True) if heard else None)))
        async with freed(face):
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert (await store.threads.get(id)).status == "interrupted"


async def test_run_stopped_over_http_is_resumed(face: Face, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder="none", model_url=face.url("one", Weather(0, 0.0)))
    app = create_app(settings)
    async with app.router.lifespan_context(app), client_of(app) as client:
        await upload(client)
        begun = await client.post("/v1/runs", json={"question": QUESTION, "method": "par-rag"})
        async with freed(face):
            stopped = await client.post(f"/v1/runs/{begun.json()['thread']}/stop")
            assert stopped.status_code == 202, stopped.text


@asynccontextmanager
async def asking(method: str, model_url: str, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """`sleuth ask`; once it is interrupted it ends as such commands do."""
    file = folder / "light.txt"
    file.write_text("The Pellowrig Light was built by Edric Gannow.", encoding="utf-8")
    own = {"SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": model_url}
    environment = os.environ | own | {"SLEUTH_HOME": str(folder / "home")}
    read = await asyncio.create_subprocess_exec(*SLEUTH, "ingest", str(file), env=environment)
    assert await read.wait() == 0
    command = [*SLEUTH, "ask", QUESTION, "--method", method]
    asked = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    yield asked
    _, said = await asked.communicate()
    assert asked.returncode == 130, said.decode()


async def test_interrupted_command_is_resumed(face: Face, tmp_path: Path) -> None:
    async with asking("par-rag", face.url("one", Weather(0, 0.0)), tmp_path) as asked, freed(face):
        asked.send_signal(signal.SIGINT)


async def stopped_again_and_again(house: House, trial: Trial) -> None:
    dice = Random(trial.method)
    for at in range(RUNS):
        run = Run(house, trial, Weather(at, 0.0), f"{trial.method}-{at}")
        for _ in range(STOPS):
            task = asyncio.create_task(run.checked(HANGS))
            await asyncio.wait([task], timeout=dice.random() * house.took[trial.method])
            task.cancel()
            await asyncio.wait([task])
        answer = (await run.checked(HANGS)).answer
        assert answer
        assert kills.essence(answer.to_json()) == house.expected[trial.method]


async def test_run_stopped_repeatedly_gives_the_same_answer(tmp_path: Path) -> None:
    async with housed(tmp_path, EVERY) as house, asyncio.TaskGroup() as group:
        for trial in EVERY:
            group.create_task(stopped_again_and_again(house, trial), name=trial.method)


async def test_ingest_stopped_anywhere_resumes_in_the_same_process(tmp_path: Path) -> None:
    """It once left its checkpoints locked for the next one."""
    dice, rows = Random(1), [{"id": f"p{n}", "title": f"T{n}", "text": f"Text {n}."} for n in range(PASSAGES)]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for at in range(RUNS):
        settings = Settings(home=tmp_path / str(at), embedder="hashing")
        for _ in range(STOPS):
            task = asyncio.create_task(ingest([corpus], settings=settings, embedder=HashingEmbedder()))
            await asyncio.wait([task], timeout=dice.random() * 0.5)
            task.cancel()
            await asyncio.wait([task])
        await ingest([corpus], settings=settings, embedder=HashingEmbedder())
        async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
            assert (await library.count())[1] == PASSAGES


@dataclass(frozen=True)
class Working:
    """Return vLLM's numbers of running requests, of finished requests, and of generated tokens."""

    running: float
    ended: float
    written: float

    @classmethod
    async def now(cls, http: httpx.AsyncClient) -> "Working":
        lines = [line for line in (await http.get("/metrics")).text.splitlines() if line.startswith("vllm:")]
        ended = [line for line in lines if line.startswith("vllm:request_success_total") and '"abort"' not in line]
        return cls(
            _total(line for line in lines if line.startswith("vllm:num_requests_running")),
            _total(ended),
            _total(line for line in lines if line.startswith("vllm:generation_tokens_total")),
        )


def _total(lines: Iterable[str]) -> float:
    return sum(float(line.split()[-1]) for line in lines)


# Longer than what is asked to learn what a server can do. IRCoT's sentences are plain text of up to 128 tokens.
LONG = 30
TRIES = 8
Stop = Callable[[AbstractAsyncContextManager[None]], Awaitable[None]]
"""Has something written, and stops it within the block that it is given."""


async def stops_vllm(url: str, stop: Stop) -> None:
    """Check that vLLM aborts what it writes at a stop; try again where it had come to the end before."""
    for _ in range(TRIES):
        async with httpx.AsyncClient(base_url=url.removesuffix("/v1"), timeout=60) as http:
            aborted: list[bool] = []
            await stop(_stopped(http, aborted))
        if any(aborted):
            return
    pytest.fail("whatever was written came to its end")


@asynccontextmanager
async def _stopped(http: httpx.AsyncClient, aborted: list[bool]) -> AsyncIterator[None]:
    """Wait until vLLM is writing something long, and after the block until it is not; was it aborted?"""
    before = taken = await Working.now(http)
    while not taken.running or taken.written - before.written < LONG:
        taken = await Working.now(http)
        if taken.ended > before.ended:
            before = taken
    yield
    while (found := await Working.now(http)).running:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.02)
    aborted.append(found.ended == taken.ended)


@pytest.mark.vllm
@pytest.mark.parametrize("heard", [False, True], ids=["whole", "streamed"])
async def test_vllm_stops_writing_when_a_task_is_cancelled(vllm_url: str, tmp_path: Path, heard: bool) -> None:
    settings = Settings(home=tmp_path, model_url=vllm_url, timeout=300)
    async with LLMClient.open(settings) as model, open_store(settings) as store:
        runs = RunService(store, Services(model=model, retriever=Shelf()))

        async def stop(freed: AbstractAsyncContextManager[None]) -> None:
            id = await runs.start(QUESTION, "ircot")
            task = asyncio.create_task(last_answer(runs.run(id, listening=(lambda: True) if heard else None)))
            async with freed:
                task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

        await stops_vllm(vllm_url, stop)


@pytest.mark.vllm
async def test_vllm_stops_writing_when_a_run_is_stopped_over_http(vllm_url: str, tmp_path: Path) -> None:
    app = create_app(Settings(home=tmp_path, embedder="none", model_url=vllm_url, timeout=300))
    async with app.router.lifespan_context(app), client_of(app) as client:
        await upload(client)

        async def stop(freed: AbstractAsyncContextManager[None]) -> None:
            begun = await client.post("/v1/runs", json={"question": QUESTION, "method": "ircot"})
            async with freed:
                stopped = await client.post(f"/v1/runs/{begun.json()['thread']}/stop")
                assert stopped.status_code == 202, stopped.text

        await stops_vllm(vllm_url, stop)


@pytest.mark.vllm
async def test_vllm_stops_writing_when_a_command_is_interrupted(vllm_url: str, tmp_path: Path) -> None:
    async def stop(freed: AbstractAsyncContextManager[None]) -> None:
        async with asking("ircot", vllm_url, tmp_path) as asked, freed:
            asked.send_signal(signal.SIGINT)

    await stops_vllm(vllm_url, stop)


@pytest.mark.vllm
async def test_vllm_stops_writing_when_nobody_reads_the_events(vllm_url: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, model_url=vllm_url, timeout=300)
    async with (
        httpx.AsyncClient(base_url=vllm_url.removesuffix("/v1"), timeout=60) as http,
        LLMClient.open(settings) as model,
        open_store(settings) as store,
    ):
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        for _ in range(TRIES):
            id = await runs.start(QUESTION, "ircot")
            async with aclosing(runs.run(id, listening=lambda: True)) as events:
                async for event in events:
                    if isinstance(event, Delta):
                        taken = await Working.now(http)
                        break
            while (left := await Working.now(http)).running > 0:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)
            if taken.running and left.ended == taken.ended:
                return
        pytest.fail("whatever was written came to its end")
