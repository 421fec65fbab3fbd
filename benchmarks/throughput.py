"""Throughput of concurrent questions, compared with the bare model server on the same requests.

    python -m benchmarks.throughput [--at-once 64] [--questions 128] [--rates 8 16 32] [--method NAME] [--json FILE]
    python -m benchmarks.throughput --real ...

Without --real, the server is a mock in a separate process. It speaks OpenAI's protocol and answers a fixed number of
requests per second with the replies of the simulated model: the difference to that rate is sleuth's. With --real, it is
the server of the settings.

A first pass, not timed, records every request. Then one bare client per concurrent question sends the recorded bodies
to the server, each as soon as its last reply arrives. Then sleuth answers the same questions with the same concurrency.
Ratios are of calls per second. The steps of a question are sequential, so that fewer are active at the end.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import sleuth
from benchmarks.harness import EXAMPLES, golds, write_json
from benchmarks.servers import USAGE, completion, free_port, model_routes, serve_app, serving, wait_until_up
from sleuth.agents.model import Reply, Request
from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer, open_sleuth
from sleuth.tools.collection import Collection
from sleuth.tools.ingestion.ingestion import ingest
from training.simulation import Gold, SimulatedModel, Simulation

ENOUGH = 0.9
Replies = dict[str, str]


def key(messages: Sequence[Any]) -> str:
    return sha256("\0".join(str(message["content"]) for message in messages).encode()).hexdigest()


class Noting(SimulatedModel):
    """A simulated model that records its replies."""

    def __init__(self, gold: Gold, texts: Replies) -> None:
        super().__init__(gold, Simulation())
        self._texts = texts

    async def call(self, request: Request) -> Reply:
        reply = await super().call(request)
        self._texts[key(request.messages)] = reply["text"]
        return reply


async def simulated(settings: sleuth.Settings, method: str, folder: Path) -> tuple[list[str], Replies]:
    """Return the example questions, and a simulated model's reply to each call."""
    texts: Replies = {}
    own = settings.model_copy(update={"runs": folder})
    async with await Collection.open(settings) as collection, open_store(own) as store:
        known = await golds(collection)
        for gold in known:
            model = Noting(gold, texts)
            runs = RunService(store, Services(model=model, retriever=collection, embedder=collection.embedder))
            await last_answer(runs.run(await runs.start(RunRequest(question=gold.question, method=method))))
    return [gold.question for gold in known], texts


def serve(replies: Replies, port: int) -> None:
    """Run the mock server; its rate of requests per second is set by POST /rate, 0 is unlimited."""
    rate = free_at = 0.0

    async def set_rate(request: HttpRequest) -> Response:
        nonlocal rate
        rate = float((await request.json())["rate"])
        return Response()

    async def chat(request: HttpRequest) -> Response:
        nonlocal free_at
        body = await request.json()
        unknown = "amber" if "structured_outputs" in body else '{"ready":true}'
        if rate:
            free_at = max(free_at, time.perf_counter()) + 1 / rate
            await asyncio.sleep(free_at - time.perf_counter())
        message = {"role": "assistant", "content": replies.get(key(body["messages"]), unknown)}
        return JSONResponse(completion({"message": message}) | {"usage": USAGE})

    own = [Route("/rate", set_rate, methods=["POST"]), Route("/v1/chat/completions", chat, methods=["POST"])]
    serve_app(Starlette(routes=[*model_routes(), *own]), port)


async def through_sleuth(settings: sleuth.Settings, method: str, questions: Sequence[str], at_once: int) -> list[float]:
    """Return when each call had come back, in seconds from the start."""
    ended, left = list[float](), iter(questions)
    async with open_sleuth(settings) as opened:
        await opened.ask(questions[0], method=method)  # warm
        began = time.perf_counter()

        async def client() -> None:
            for question in left:
                async for event in opened.stream(question, method=method):
                    update = getattr(event, "update", None) or {}
                    if getattr(event, "state", "") == "finished":
                        ended.extend([time.perf_counter() - began] * len(update.get("calls") or {}))

        await asyncio.gather(*(client() for _ in range(at_once)))
    return ended


async def bare(url: str, bodies: Sequence[bytes], at_once: int) -> float:
    """Return the calls per second."""
    left, limits = iter(bodies), httpx.Limits(max_connections=None)
    headers = {"Content-Type": "application/json"}
    async with httpx.AsyncClient(timeout=600, headers=headers, limits=limits) as http:

        async def client() -> None:
            for body in left:
                (await http.post(f"{url}/chat/completions", content=body)).raise_for_status()

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(at_once)))
        return len(bodies) / (time.perf_counter() - began)


async def compare(
    settings: sleuth.Settings, method: str, questions: Sequence[str], at_once: int, bodies: Sequence[bytes]
) -> dict[str, float]:
    alone = await bare(settings.model_url, bodies, at_once)
    ended = await through_sleuth(settings, method, questions, at_once)
    ours = len(ended) / max(ended)
    return {
        "calls": len(ended),
        "bare, calls/s": round(alone, 2),
        "sleuth, calls/s": round(ours, 2),
        "ratio": round(ours / alone, 3),
    }


@asynccontextmanager
async def recorder(upstream: str, *, tokens: int | None = None) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Run a proxy in front of the model server; yield its URL and the bodies of the completions requested so far.

    tokens: the length at which the server ends a reply; that of the request by default.
    """
    recorded: list[bytes] = []

    async def forward(request: HttpRequest) -> Response:
        body = await request.body()
        if request.headers.get("x-sleuth-call"):
            recorded.append(body)
            body = json.dumps(json.loads(body) | {"max_tokens": tokens}).encode() if tokens else body
        url = upstream.removesuffix("/v1") + request.url.path
        reply = await client.request(request.method, url, content=body, headers={"Content-Type": "application/json"})
        return Response(reply.content, reply.status_code, media_type=reply.headers["content-type"])

    app = Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", ws="none", lifespan="off"))
    async with httpx.AsyncClient(timeout=600) as client:
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1", recorded
        server.should_exit = True
        await serving


async def record(settings: sleuth.Settings, method: str, questions: Sequence[str], at_once: int) -> list[bytes]:
    async with recorder(settings.model_url) as (url, recorded):
        await through_sleuth(settings.model_copy(update={"model_url": url}), method, questions, at_once)
    return recorded


async def main(given: argparse.Namespace) -> dict[str, dict[str, float]]:
    measured: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        settings = sleuth.Settings(home=home, runs=Path(folder), concurrency=given.at_once, timeout=1200)
        await ingest([EXAMPLES / "corpus"], settings=settings)
        asked, replies = await simulated(settings, given.method, Path(folder) / "first")
        questions = list(islice(cycle(asked), given.questions))
        if given.real:
            bodies = await record(settings, given.method, questions, given.at_once)
            return {"real": await compare(settings, given.method, questions, given.at_once, bodies)}
        root = f"http://127.0.0.1:{(port := free_port())}"
        with serving(serve, replies, port):
            wait_until_up(f"{root}/v1/models")
            settings = settings.model_copy(update={"model_url": f"{root}/v1"})
            bodies = await record(settings, given.method, questions, given.at_once)
            for rate in given.rates:
                async with httpx.AsyncClient(trust_env=False) as http:
                    (await http.post(f"{root}/rate", json={"rate": rate})).raise_for_status()
                measured[f"{rate:g} a second"] = found = await compare(
                    settings, given.method, questions, given.at_once, bodies
                )
                print(f"{rate:g} a second: {found}", file=sys.stderr, flush=True)
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--questions", type=int, default=128)
    parser.add_argument("--rates", type=float, nargs="+", default=[8.0, 16.0, 32.0], help="requests a second")
    parser.add_argument("--method", default="par-rag")
    parser.add_argument("--real", action="store_true", help="against the model server of the settings")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = asyncio.run(main(given))
    found = vars(given) | {"json": None, "measured": result}
    print(json.dumps(found, indent=1))
    if given.json:
        write_json(given.json, found)
    sys.exit(0 if all(each["ratio"] >= ENOUGH for each in result.values()) else 1)
