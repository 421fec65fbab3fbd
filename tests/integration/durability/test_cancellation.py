"""Stopping a run by any means ends its requests at the model server immediately."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random

import httpx
import pytest
from four_hops import QUESTION, Shelf, four_hops
from hashing_embedder import HashingEmbedder
from model_server import ModelServer, serving, status
from scripted_backend import Scripted, prompt_of
from serve_scene import client_of, upload
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from sleuth.agents.llm.client import LLMClient
from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.studio.server.app import create_app
from sleuth.tools.collection.collection import Collection
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.settings import Settings

SLOTS = 2
"""Number of parallel calls in PAR-RAG's first wave."""
# A child of a shell's background job ignores interrupts.
SLEUTH = [
    sys.executable,
    "-c",
    "import signal; from sleuth.studio.cli.app import main; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); main()",
]
RUNS, STOPS, PASSAGES = 4, 3, 300
STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


class Held(ModelServer):
    """Answers from the script of four hops, but never returns a draft."""

    backend = Scripted(four_hops)

    async def scripted(self, request: HttpRequest) -> Response:
        asked = await request.json()
        if prompt_of(asked) != "drafter/draft":
            return await self.replied(json.loads(bytes(self.backend.reply(asked).body)), request)
        while (await request.receive())["type"] != "http.disconnect":
            pass
        return status(499)


@pytest.fixture
async def server() -> AsyncIterator[Held]:
    async with serving(held := Held()):
        yield held


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(300):
        while not holds():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


@asynccontextmanager
async def freed(server: Held) -> AsyncIterator[None]:
    """Wait until all slots are taken, and after the block until they are free: no reply is ever completed."""
    await until(lambda: server.running == SLOTS)
    yield
    await until(lambda: server.running == 0)


async def cancel_run(
    url: str, home: Path, method: str, freed: AbstractAsyncContextManager[None], *, streamed: bool
) -> None:
    """Run a question in a task, and cancel it inside a block."""
    settings = Settings(home=home, model_url=url, timeout=300)
    async with LLMClient.open(settings) as model, open_store(settings) as store:
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        id = await runs.start(RunRequest(question=QUESTION, method=method))
        task = asyncio.create_task(last_answer(runs.run(id, wants_tokens=(lambda: True) if streamed else None)))
        async with freed:
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert (await store.threads.get(id)).state == "interrupted"


@STREAMED
async def test_cancelled_task_ends_its_requests(server: Held, tmp_path: Path, streamed: bool) -> None:
    await cancel_run(server.url, tmp_path, "par-rag", freed(server), streamed=streamed)


async def test_run_stopped_over_http_ends_its_requests(server: Held, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder="none", model_url=server.url)
    app = create_app(settings)
    async with app.router.lifespan_context(app), client_of(app) as client:
        await upload(client)
        begun = await client.post("/v1/runs", json={"question": QUESTION, "method": "par-rag"})
        async with freed(server):
            stopped = await client.post(f"/v1/runs/{begun.json()['thread']}/stop")
            assert stopped.status_code == 202, stopped.text


@pytest.mark.nightly
async def test_interrupted_command_ends_its_requests(server: Held, tmp_path: Path) -> None:
    file = tmp_path / "light.txt"
    file.write_text("The Pellowrig Light was built by Edric Gannow.", encoding="utf-8")
    own = {"SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": server.url}
    environment = os.environ | own | {"SLEUTH_HOME": str(tmp_path / "home")}
    ingesting = await asyncio.create_subprocess_exec(*SLEUTH, "ingest", str(file), env=environment)
    assert await ingesting.wait() == 0
    command = (*SLEUTH, "ask", QUESTION, "--method", "par-rag")
    asking = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    async with freed(server):
        asking.send_signal(signal.SIGINT)
    _, errors = await asking.communicate()
    assert asking.returncode == 130, errors.decode()


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


# Longer than the replies to the probes of a server's capabilities. IRCoT's sentences have up to 128 tokens.
LONG = 30
TRIES = 8


async def vllm_counts(http: httpx.AsyncClient) -> dict[str, float]:
    """Return vLLM's numbers of running requests, of requests that were not aborted, and of generated tokens."""
    names = {"num_requests_running": "running", "request_success_total": "ended", "generation_tokens_total": "written"}
    counts = dict.fromkeys(names.values(), 0.0)
    for line in (await http.get("/metrics")).text.splitlines():
        name = re.split("[{ ]", line.removeprefix("vllm:"))[0]
        if name in names and '"abort"' not in line:
            counts[names[name]] += float(line.split()[-1])
    return counts


@asynccontextmanager
async def aborted(http: httpx.AsyncClient, results: list[bool]) -> AsyncIterator[None]:
    """Wait until vLLM is writing something long, and after the block until it is idle; was the request aborted?"""
    before = taken = await vllm_counts(http)
    while not taken["running"] or taken["written"] - before["written"] < LONG:
        taken = await vllm_counts(http)
        if taken["ended"] > before["ended"]:
            before = taken
    yield
    while (found := await vllm_counts(http))["running"]:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.02)
    results.append(found["ended"] == taken["ended"])


@pytest.mark.nightly
@pytest.mark.vllm
@STREAMED
async def test_vllm_stops_writing_when_a_request_ends(vllm_url: str, tmp_path: Path, streamed: bool) -> None:
    results: list[bool] = []
    async with httpx.AsyncClient(base_url=vllm_url.removesuffix("/v1"), timeout=60) as http:
        for at in range(TRIES):  # the model may have ended its reply before the stop
            await cancel_run(vllm_url, tmp_path / str(at), "ircot", aborted(http, results), streamed=streamed)
            if any(results):
                return
    pytest.fail("all replies were completed")
