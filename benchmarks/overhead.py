"""Overhead of a run without model and embedder: graph, checkpoints and retrieval.

    python -m benchmarks.overhead [--methods NAME ...] [--limit N] [--json FILE]

Simulated runs without errors, one after the other, over the example corpus. Milliseconds, by the clock and of processor
time, which other work on the machine changes less; the time of the simulated model is subtracted. For each method:

- "store": a run as `sleuth ask` makes it, with SQLite checkpoints and archive, for each node and for each run
- "search": retrieval for each run
- "share at 1 s": store and search against a run whose calls take a second each, in per cent; concurrent calls count
  once

Set SLEUTH_EMBEDDER=none, or the time of the embedder is part of the search. Prints a table, writes JSON with --json,
and exits with 1 where a method is above 5 % or 3 ms for each node.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.harness import EXAMPLES, Clock, Spent, golds, write_json
from sleuth.agents.model import Message, Reply, Request
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Context, Services
from sleuth.graphs.core.events import Step
from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs.execution import RECURSION_LIMIT
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.graphs.runs.subruns import CheckpointerSubruns
from sleuth.tools.collection import Collection
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search import Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.types import Hit
from training.simulation import Gold, SimulatedModel, Simulation

MOST_SHARE = 5.0
MOST_MS = 3.0
MOMENT = 0.005


class Instant(SimulatedModel):
    """A simulated model with a clock; it may wait a moment, and counts its rounds of concurrent calls."""

    def __init__(self, gold: Gold, *, waits: bool = False) -> None:
        super().__init__(gold, Simulation())
        self.clock = Clock()
        self.rounds = 0
        self._waits = waits
        self._waiting = 0

    async def call(self, request: Request) -> Reply:
        if self._waits:
            self.rounds += not self._waiting
            self._waiting += 1
            await asyncio.sleep(MOMENT)
            self._waiting -= 1
        with self.clock.running():
            return await super().call(request)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        with self.clock.running():
            return await super().count_tokens(messages, role=role)


@dataclass
class Remembering:
    """A retriever that caches each query, and records the time of its search."""

    collection: Collection
    clock: Clock = field(default_factory=Clock)
    known: dict[Query, list[Hit]] = field(default_factory=dict)

    async def search(self, query: Query) -> list[Hit]:
        if query not in self.known:
            with self.clock.running():
                self.known[query] = await self.collection.search(query)
        return self.known[query]


@dataclass(frozen=True)
class Run:
    """One stored run: its time without the model, its nodes and its calls."""

    spent: Spent
    nodes: int
    calls: int


async def stored(store: Store, name: str, gold: Gold, search: Remembering, id: str) -> Run:
    """Return a run as `sleuth ask` makes it, all of whose queries have been searched before."""
    model = Instant(gold)
    runs = RunService(store, Services(model=model, retriever=search, embedder=search.collection.embedder))
    began = Spent.so_far()
    events = [
        event async for event in runs.run(await runs.start(RunRequest(question=gold.question, method=name, thread=id)))
    ]
    spent = Spent.so_far() - began - model.clock.spent
    nodes = sum(isinstance(each, Step) and each.state == "finished" for each in events)
    [answer] = [each for each in events if isinstance(each, Answer)]
    return Run(spent=spent, nodes=nodes, calls=answer.cost["calls"])


async def rounds_of(name: str, gold: Gold, search: Remembering) -> int:
    """Return the rounds of concurrent calls of a run, without a store."""
    model = Instant(gold, waits=True)
    context = Context(model=model, retriever=search, archive=MemoryArchive(), settings=METHODS[name].settings())
    context = replace(context, embedder=search.collection.embedder)
    context = replace(context, subruns=CheckpointerSubruns(saver=InMemorySaver(), context=context))
    config: RunnableConfig = {"recursion_limit": RECURSION_LIMIT}
    await METHODS[name].graph().compile().ainvoke({"question": gold.question}, config, context=context)
    return model.rounds


async def measure(store: Store, collection: Collection, name: str, golds: Sequence[Gold]) -> dict[str, float]:
    """Return one method over all questions; a first run warms up and does not count."""
    rounds, runs, search = 0, list[Run](), Remembering(collection)
    for number, gold in enumerate([golds[0], *golds]):
        if number == 1:
            rounds, runs, search = 0, [], Remembering(collection)
        rounds += await rounds_of(name, gold, search)
        runs.append(await stored(store, name, gold, search, f"{name}-{number}"))
    nodes, count, own = sum(run.nodes for run in runs), len(runs), sum((run.spent for run in runs), Spent())
    found = search.clock.spent
    return {
        "calls": round(sum(run.calls for run in runs) / count, 1),
        "nodes": round(nodes / count, 1),
        "store, ms/node": round(1000 * own.wall / nodes, 2),
        "store, cpu ms/node": round(1000 * own.cpu / nodes, 2),
        "store, ms/run": round(1000 * own.wall / count, 1),
        "search, ms/run": round(1000 * found.wall / count, 1),
        "share at 1 s, %": round(100 * (own + found).wall / ((own + found).wall + rounds), 2),
    }


async def main(methods: list[str], limit: int) -> dict[str, dict[str, float]]:
    measured: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder), runs=Path(folder) / "runs")
        await ingest([EXAMPLES / "corpus"], settings=settings)
        async with await Collection.open(settings) as collection, open_store(settings) as store:
            await collection.search(Query(text="warm up", k=1, mode="graph"))
            every = await golds(collection)
            for name in methods:
                own = every[:: max(1, len(every) // limit)][:limit]
                measured[name] = found = await measure(store, collection, name, own)
                if len(measured) == 1:
                    print(" " * 12 + "".join(f"{key:>19}" for key in found))
                print(f"{name:12}" + "".join(f"{value:>19}" for value in found.values()), flush=True)
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--limit", type=int, default=8)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = asyncio.run(main(given.methods, given.limit))
    if given.json:
        write_json(given.json, {"questions": given.limit, "methods": result})
    fits = (each["share at 1 s, %"] <= MOST_SHARE and each["store, ms/node"] <= MOST_MS for each in result.values())
    sys.exit(0 if all(fits) else 1)
