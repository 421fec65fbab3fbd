"""Concurrent readers of one `sleuth serve`, with a model that answers immediately; and its memory over many runs.

    python -m benchmarks.streams [--streams 200] [--runs 2000] [--method plain-rag]

The server is a process of its own, over a folder of its own, searched by words. First `--streams` clients each start a
run at the same moment and follow its events to the answer: seconds to the first event and to the last. Then `--runs`
runs, fifty at a time; the server's resident memory after each two hundred. Prints JSON; exits with 1 unless all end
with an answer and every event has come once.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles

import httpx
import psutil

from benchmarks.servers import free_port, serving, wait_until_up
from sleuth.agents.model import Message, NamedModel, Reply, Request, Usage
from sleuth.studio.server.app import create_app
from sleuth.studio.server.main import server_of
from sleuth.tools.settings import Settings

TEXTS = {f"article {n}.txt": f"Lighthouse number {n} was built by keeper {n * 7} in {1800 + n}." for n in range(50)}
QUESTION = "Who built lighthouse number 7?"
AT_ONCE, EVERY = 50, 200


class Instant:
    """A model that replies immediately."""

    context_window = 8192

    def name_of(self, role: str) -> str:
        return "instant"

    async def call(self, request: Request) -> Reply:
        text = json.dumps({"answer": "keeper 49", "citations": [], "answerable": True})
        usage = Usage(prompt_tokens=100, cached_tokens=0, completion_tokens=10)
        return Reply(text=text, finish="stop", model="instant", usage=usage, seconds=0.0, logprobs=None, warnings=[])

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return 100


@asynccontextmanager
async def instant(_settings: Settings) -> AsyncIterator[NamedModel]:
    yield Instant()


def serve(home: Path, port: int) -> None:
    app = create_app(Settings(home=home, embedder="none"), open_model=instant)
    server_of(app, host="127.0.0.1", port=port).run()


async def follow(client: httpx.AsyncClient, method: str) -> tuple[float, float]:
    """Return one run: seconds to its first event and to its last."""
    began, first, ids, ended = time.perf_counter(), 0.0, [], ""
    begun = await client.post("/v1/runs", json={"question": QUESTION, "method": method})
    async with client.stream("GET", f"/v1/runs/{begun.raise_for_status().json()['thread']}/events") as stream:
        async for line in stream.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                first, ended = first or time.perf_counter(), value
            elif name == "id":
                ids.append(int(value))
    if ended != "answer" or ids != list(range(1, len(ids) + 1)):
        raise SystemExit(f"a run ended with {ended or 'nothing'} and events {ids}")
    return first - began, time.perf_counter() - began


async def read_in(client: httpx.AsyncClient) -> None:
    files = [("files", (name, text.encode())) for name, text in TEXTS.items()]
    taken = await client.post("/v1/documents", files=files)
    await client.get(f"/v1/ingests/{taken.raise_for_status().json()['ingest']}/events")


def spread(seconds: list[float]) -> dict[str, float]:
    cuts = quantiles(seconds, n=20)
    return {"p50": round(cuts[9], 3), "p95": round(cuts[18], 3), "most": round(max(seconds), 3)}


async def measure(port: int, server: psutil.Process, given: argparse.Namespace) -> dict[str, object]:
    url, limits = f"http://127.0.0.1:{port}", httpx.Limits(max_connections=None)
    wait_until_up(f"{url}/healthz")
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits, trust_env=False) as client:
        await read_in(client)
        await follow(client, given.method)
        began = time.perf_counter()
        times = await asyncio.gather(*(follow(client, given.method) for _ in range(given.streams)))
        wall = time.perf_counter() - began
        memory, began = {0: server.memory_info().rss >> 20}, time.perf_counter()
        for done in range(AT_ONCE, given.runs + 1, AT_ONCE):
            await asyncio.gather(*(follow(client, given.method) for _ in range(AT_ONCE)))
            if done % EVERY == 0:
                memory[done] = server.memory_info().rss >> 20
        rate = given.runs / (time.perf_counter() - began)
    return {
        "method": given.method,
        "streams": given.streams,
        "first_event_seconds": spread([first for first, _ in times]),
        "whole_seconds": spread([whole for _, whole in times]),
        "all_within_seconds": round(wall, 2),
        "runs": given.runs,
        "runs_a_second": round(rate, 1),
        "memory_mib": memory,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--method", default="plain-rag")
    given = parser.parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, serving(serve, Path(folder), port) as pid:
        found = asyncio.run(measure(port, psutil.Process(pid), given))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
