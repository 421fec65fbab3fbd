"""Eight questions at once through the Python API, against the bare model server given the same requests.

    python benchmarks/eight_at_once.py [--home FOLDER] [--rounds R] [--set KEY=VALUE]...

A first pass, not timed, goes through a recorder: it says which requests each question makes and which of them wait for
which, and it leaves the server's prefix cache as warm for either side. Then both are timed in turns: sleuth as it is,
and a bare HTTP client that sends the recorded bodies, a question's requests in their order, eight questions at once.
The example corpus is read into a folder of its own unless `--home` names one that has it. Exits with 1 above 1.3.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import sleuth
from sleuth.graphs.history import export
from sleuth.graphs.ingest import ingest
from sleuth.tools.retriever import Query

EXAMPLES = Path(__file__).parents[1] / "examples"
QUESTIONS = ("q08", "q11", "q14", "q16", "q19", "q22", "q24", "q27")
MOST = 1.3


@dataclass(eq=False)
class Sent:
    """One recorded request, and the requests of the same question that had been answered before it was made."""

    call: str
    body: bytes
    began: float
    ended: float = float("inf")
    after: list["Sent"] = field(default_factory=list)


@asynccontextmanager
async def recorder(upstream: str) -> AsyncIterator[tuple[str, list[Sent]]]:
    """A proxy in front of the model server: its URL, and the completions that were asked for through it."""
    recorded: list[Sent] = []

    async def forward(request: Request) -> Response:
        body, call = await request.body(), request.headers.get("x-sleuth-call", "")
        sent = Sent(call, body, time.perf_counter())
        if call:
            recorded.append(sent)
        url = upstream.removesuffix("/v1") + request.url.path
        reply = await client.request(request.method, url, content=body, headers={"Content-Type": "application/json"})
        sent.ended = time.perf_counter()
        return Response(reply.content, reply.status_code, media_type="application/json")

    app = Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", ws="none", lifespan="off"))
    async with httpx.AsyncClient(timeout=600) as client:
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1", recorded
        server.should_exit = True
        await serving


async def through_sleuth(
    settings: sleuth.Settings, questions: list[str], values: dict[str, str]
) -> tuple[float, list[set[str]], int]:
    """Seconds for all questions at once, the ids of the calls that each has made, and their tokens in all."""
    async with sleuth.open(settings) as opened:
        assert opened.runs.services
        await opened.runs.services.retriever.search(Query(text="warm up", k=1))
        began = time.perf_counter()
        answers = await asyncio.gather(*(opened.ask(question, values=values) for question in questions))
        seconds = time.perf_counter() - began
        exports = [await export(opened.runs, answer.thread) for answer in answers]
    tokens = sum(answer.cost["completion_tokens"] for answer in answers)
    return seconds, [set(each["state"]["calls"]) for each in exports], tokens


async def bare(url: str, questions: list[list[Sent]], concurrency: int) -> tuple[float, int]:
    """Seconds for the recorded requests of all questions, and their tokens in all."""
    slots, tokens = asyncio.Semaphore(concurrency), 0
    done = {sent: asyncio.Event() for each in questions for sent in each}

    async def send(sent: Sent) -> None:
        nonlocal tokens
        for earlier in sent.after:
            await done[earlier].wait()
        async with slots:
            reply = await client.post(f"{url}/chat/completions", content=sent.body)
        tokens += reply.json()["usage"]["completion_tokens"]
        done[sent].set()

    async with httpx.AsyncClient(timeout=600, headers={"Content-Type": "application/json"}) as client:
        began = time.perf_counter()
        await asyncio.gather(*(send(sent) for each in questions for sent in each))
        return time.perf_counter() - began, tokens


def by_question(recorded: list[Sent], calls: list[set[str]]) -> list[list[Sent]]:
    """The recorded requests of each question, and what each of them waited for."""
    questions = [[sent for sent in recorded if sent.call in ids] for ids in calls]
    for each in questions:
        for sent in each:
            sent.after = [other for other in each if other.ended <= sent.began]
    return questions


async def main(home: Path | None, rounds: int, values: dict[str, str]) -> int:
    lines = (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [row["question"] for row in map(json.loads, lines) if row["id"] in QUESTIONS]
    with tempfile.TemporaryDirectory() as folder:
        settings = sleuth.Settings(home=home or Path(folder), timeout=600)
        if home is None:
            await ingest([EXAMPLES / "corpus"], settings=settings)
        async with recorder(settings.model_url) as (url, recorded):
            through = settings.model_copy(update={"model_url": url})
            _, calls, tokens = await through_sleuth(through, questions, values)
        requests = by_question(recorded, calls)
        print(f"{len(questions)} questions, {sum(map(len, requests))} model calls, {tokens:,} tokens written")
        ours, theirs = [], []
        for number in range(1, rounds + 1):
            seconds, written = await bare(settings.model_url, requests, settings.concurrency)
            theirs.append(seconds)
            taken, calls, tokens = await through_sleuth(settings, questions, values)
            ours.append(taken)
            made = sum(map(len, calls))
            print(f"round {number}: bare {seconds:.1f} s, {written:,} tokens", end="; ")
            print(f"sleuth {taken:.1f} s, {made} calls, {tokens:,} tokens")
    ratio = median(ours) / median(theirs)
    print(f"median: bare {median(theirs):.1f} s, sleuth {median(ours):.1f} s, ratio {ratio:.2f} (at most {MOST})")
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.home, given.rounds, dict(pair.split("=", 1) for pair in given.set))))
