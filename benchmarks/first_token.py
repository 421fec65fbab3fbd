"""Time to the first token of plain RAG through sleuth, compared with the bare model server.

    python -m benchmarks.first_token [--firsts 0.1 0.2 0.5] [--questions 20] [--json FILE]

The server is a mock in a process of its own that takes a fixed time to its first token.

A first pass, not timed, records the request of each question. Then each question is answered through `sleuth.stream`,
and its recorded request is sent to the server without sleuth, in turns that begin with one or the other. Milliseconds
from the call to the first token: the median of each, the median of the ratios of each pair, and what sleuth did until
then: "search" is the node `retrieve`, "rest" is everything else, such as checkpoints. "cpu" is the processor time of
this process until the first token, which other work on the machine changes less. Exits with 1 above 1.2.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx

import sleuth
from benchmarks.harness import EXAMPLES, Spent, write_json
from benchmarks.servers import free_port, serving, wait_until_up
from benchmarks.throughput import recorder
from sleuth.studio.client.sleuth import open_sleuth
from sleuth.studio.evaluation.run_folder import read_lines
from sleuth.tools.ingestion.ingestion import ingest
from tests.support import standin

MOST = 1.2
METHOD = "plain-rag"


@dataclass(frozen=True)
class Pair:
    """Seconds to the first token of one question: of the bare server, and through sleuth with its search."""

    bare: float
    ours: Spent
    search: Spent


@contextmanager
def mock(first: float) -> Iterator[str]:
    """Run the mock server, whose replies begin after some seconds, in a process of its own; yield its URL."""
    port = free_port()
    with serving(standin.serve, port, 0.0, first):
        wait_until_up(f"http://127.0.0.1:{port}/v1/models")
        yield f"http://127.0.0.1:{port}/v1"


async def through_sleuth(app: sleuth.Sleuth, question: str) -> tuple[Spent, Spent]:
    """Return the time to the first token, and that of the search before it."""
    began, searching, search = Spent.so_far(), Spent(), Spent()
    async with aclosing(app.stream(question, method=METHOD, deltas=True)) as events:
        async for event in events:
            now = Spent.so_far()
            if isinstance(event, sleuth.Delta):
                return now - began, search
            if isinstance(event, sleuth.Step) and event.node == "retrieve":
                searching, search = now, now - searching
    sys.exit(f"No token of a reply was streamed: {question}")


async def bare(http: httpx.AsyncClient, url: str, body: bytes) -> float:
    """Return the seconds to the first token of a request; the rest of the reply is not read, as through sleuth."""
    began = time.perf_counter()
    async with http.stream("POST", f"{url}/chat/completions", content=body) as reply:
        async for line in reply.raise_for_status().aiter_lines():
            if line.startswith("data: {"):
                choices = json.loads(line.removeprefix("data: "))["choices"]
                if choices and choices[0]["delta"].get("content"):
                    return time.perf_counter() - began
    sys.exit(f"No token of a reply was streamed: {body!r:.200}")


async def record(settings: sleuth.Settings, questions: Sequence[str]) -> list[bytes]:
    """Return the request of each question."""
    async with recorder(settings.model_url, tokens=1) as (url, recorded):
        async with open_sleuth(settings.model_copy(update={"model_url": url})) as app:
            for question in questions:
                async with aclosing(app.stream(question, method=METHOD, deltas=True)) as events:
                    async for event in events:
                        if isinstance(event, sleuth.Delta):  # the first call, not its repair
                            break
        return [body for body in recorded if json.loads(body).get("stream")]


async def measure(settings: sleuth.Settings, questions: Sequence[str]) -> list[Pair]:
    bodies = await record(settings, questions)
    assert len(bodies) == len(questions), "one call for each question"
    pairs: list[Pair] = []
    headers = {"Content-Type": "application/json"}
    async with httpx.AsyncClient(timeout=600, headers=headers, trust_env=False) as http, open_sleuth(settings) as app:
        for number, (question, body) in enumerate(zip([questions[0], *questions], [bodies[0], *bodies], strict=True)):
            alone = await bare(http, settings.model_url, body) if number % 2 else 0.0
            ours, search = await through_sleuth(app, question)
            alone = alone or await bare(http, settings.model_url, body)
            pairs.append(Pair(bare=alone, ours=ours, search=search))
    return pairs[1:]  # the first one warms up


def summary(pairs: Sequence[Pair]) -> dict[str, float]:
    def ms(seconds: Iterable[float]) -> float:
        return round(1000 * median(seconds), 1)

    return {
        "bare, ms": ms(each.bare for each in pairs),
        "sleuth, ms": ms(each.ours.wall for each in pairs),
        "search, ms": ms(each.search.wall for each in pairs),
        "rest, ms": ms(each.ours.wall - each.search.wall - each.bare for each in pairs),
        "search cpu, ms": ms(each.search.cpu for each in pairs),
        "rest cpu, ms": ms(each.ours.cpu - each.search.cpu for each in pairs),
        "ratio": round(median(each.ours.wall / each.bare for each in pairs), 3),
    }


def main(given: argparse.Namespace) -> dict[str, dict[str, float]]:
    questions = [row["question"] for row in read_lines(EXAMPLES / "questions.jsonl")][: given.questions]
    measured: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = sleuth.Settings(home=Path(folder) / "home")
        asyncio.run(ingest([EXAMPLES / "corpus"], settings=settings))
        for first in given.firsts:
            with mock(first) as url:
                own = settings.model_copy(update={"model_url": url})
                measured[f"{first:g} s"] = found = summary(asyncio.run(measure(own, questions)))
                print(f"{first:g} s: {found}", file=sys.stderr, flush=True)
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--firsts", type=float, nargs="+", default=[0.1, 0.2, 0.5], help="seconds of the mock server")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = main(given)
    print(json.dumps(result, indent=1))
    if given.json:
        write_json(given.json, {"questions": given.questions, "measured": result})
    sys.exit(0 if all(each["ratio"] <= MOST for each in result.values()) else 1)
