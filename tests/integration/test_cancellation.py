"""A run that is stopped, however it is stopped, leaves the model server at once: nothing goes on writing for nobody."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fault_trials import Instant
from faulty_server import Face, Weather, facing
from four_hops import QUESTION, Shelf, four_hops
from recording_proxy import Said
from scripted_backend import prompt_of
from serve_scene import client_of, upload

from sleuth.agents.gateway import Gateway
from sleuth.graphs.events import Delta
from sleuth.graphs.runs import Runs, Services
from sleuth.graphs.store import open_store
from sleuth.studio.client import last
from sleuth.studio.serve.app import create_app
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

SLOTS = 2
"""PAR-RAG's first wave asks so many side by side."""
# Who is started in the background by a shell ignores interrupts, and so do its children.
SLEUTH = [
    sys.executable,
    "-c",
    "import signal; from sleuth.studio.cli import main; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); main()",
]
SOON = 20.0
"""Seconds; far less than the time-out of a call, and enough for a slow machine."""


class Held(Instant):
    """Never says a draft."""

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


async def until(holds: Callable[[], bool], seconds: float = 300.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.01)


@asynccontextmanager
async def freed(face: Face) -> AsyncIterator[None]:
    """Waits until all slots are taken; after the block they are free soon."""
    await until(lambda: face.open == SLOTS)
    yield
    await until(lambda: face.open == 0, SOON)


@pytest.mark.parametrize("heard", [False, True], ids=["whole", "streamed"])
async def test_a_cancelled_task(face: Face, tmp_path: Path, heard: bool) -> None:
    settings = Settings(home=tmp_path, model_url=face.url("one", Weather(0, 0.0)))
    async with Gateway.open(settings) as model, open_store(settings) as store:
        runs = Runs(store, Services(model=model, retriever=Shelf()))
        id = await runs.start(QUESTION, "par-rag")
        task = asyncio.create_task(last(runs.run(id, listening=(lambda: True) if heard else None)))
        async with freed(face):
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert (await store.threads.get(id)).status == "interrupted"


async def test_a_run_stopped_over_http(face: Face, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder="none", model_url=face.url("one", Weather(0, 0.0)))
    app = create_app(settings)
    async with app.router.lifespan_context(app), client_of(app) as client:
        await upload(client)
        begun = await client.post("/v1/runs", json={"question": QUESTION, "method": "par-rag"})
        async with freed(face):
            stopped = await client.post(f"/v1/runs/{begun.json()['thread']}/stop")
            assert stopped.status_code == 202, stopped.text


async def test_a_command_that_is_interrupted(face: Face, tmp_path: Path) -> None:
    file = tmp_path / "light.txt"
    file.write_text("The Pellowrig Light was built by Edric Gannow.", encoding="utf-8")
    own = {"SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": face.url("one", Weather(0, 0.0))}
    environment = os.environ | own | {"SLEUTH_HOME": str(tmp_path / "home")}
    read = await asyncio.create_subprocess_exec(*SLEUTH, "ingest", str(file), env=environment)
    assert await read.wait() == 0
    asked = await asyncio.create_subprocess_exec(
        *SLEUTH, "ask", QUESTION, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    async with freed(face):
        asked.send_signal(signal.SIGINT)
    _, said = await asked.communicate()
    assert asked.returncode == 130, said.decode()


async def running(http: httpx.AsyncClient) -> float:
    """How many requests vLLM is working on."""
    lines = (await http.get("/metrics")).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running"))


@pytest.mark.vllm
async def test_vllm_has_its_slot_back_within_a_second(vllm_url: str, tmp_path: Path) -> None:
    """IRCoT's sentences are plain text of up to 128 tokens: the run is stopped at the first word of one."""
    settings = Settings(home=tmp_path, model_url=vllm_url, timeout=300)
    async with (
        httpx.AsyncClient(base_url=vllm_url.removesuffix("/v1"), timeout=60) as http,
        Gateway.open(settings) as model,
        open_store(settings) as store,
    ):
        runs = Runs(store, Services(model=model, retriever=Shelf()))
        id = await runs.start(QUESTION, "ircot")
        async with aclosing(runs.run(id, listening=lambda: True)) as events:
            async for event in events:
                if isinstance(event, Delta):
                    assert await running(http) >= 1
                    stopped = time.monotonic()
                    break
        while await running(http) > 0:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)
        assert time.monotonic() - stopped < 1.0
