"""Overhead of a run without model and embedder: graph and checkpoints, retrieval, and LangGraph's own share of it.

    python -m benchmarks.overhead [--methods NAME ...] [--home FOLDER --questions FILE] [--limit N] [--json FILE]

Simulated runs without errors, one after the other, over the example corpus unless a folder that has read other
documents in is named. Milliseconds, by the clock and of processor time, which other work on the machine changes less;
the time of the simulated model is subtracted. For each method:

- "memory": graph and roles without a store, for each node
- "store": the same as `sleuth ask` runs it, with SQLite checkpoints and archive, for each node and for each run
- "floor": the run's own updates written down by LangGraph and the same SQLite saver from a node that does nothing else,
  with as many tasks; "floor/store" is LangGraph's share, by processor time
- "search": retrieval for each run, without the embedder, which takes no part unless the settings have one
- "share at 1 s": store and search against a run whose calls take a second each, in per cent; those made side by side
  count once

Prints a table, writes JSON with --json, and exits with 1 where a method is above 5 % or 3 ms for each node.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import task
from langgraph.graph import END, START, StateGraph

from benchmarks.harness import EXAMPLES, Clock, Spent, golds, write_json
from sleuth.agents.model import Message, Reply, Request
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Context
from sleuth.graphs.core.events import Step
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.graphs.persistence import Store, open_store
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs import RECURSION_LIMIT, CheckpointerSubruns, RunService, Services
from sleuth.studio.simulation import Gold, SimulatedModel, Simulation
from sleuth.tools.collection import Collection
from sleuth.tools.search import Query
from sleuth.tools.search.vectors import Embedder, Vectors, make_embedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage import MemoryArchive
from sleuth.tools.types import Hit

MOST_SHARE = 5.0
MOST_MS = 3.0
MOMENT = 0.005


@dataclass
class Instant:
    """A simulated model, and how long it plays its part. It may wait a moment, and counts how often."""

    model: SimulatedModel
    clock: Clock = field(default_factory=Clock)
    waits: bool = False
    rounds: int = 0
    _waiting: int = 0

    @property
    def context_window(self) -> int:
        return self.model.context_window

    async def call(self, request: Request) -> Reply:
        if self.waits:
            self.rounds += not self._waiting
            self._waiting += 1
            await asyncio.sleep(MOMENT)
            self._waiting -= 1
        with self.clock.running():
            return await self.model.call(request)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        with self.clock.running():
            return await self.model.count_tokens(messages, role=role)


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


@dataclass
class TimedEmbedder:
    """An embedder, and how long it computes."""

    embedder: Embedder
    clock: Clock = field(default_factory=Clock)

    @property
    def name(self) -> str:
        return self.embedder.name

    def embed_passages(self, texts: list[str]) -> Vectors:
        with self.clock.running():
            return self.embedder.embed_passages(texts)

    def embed_query(self, text: str) -> Vectors:
        with self.clock.running():
            return self.embedder.embed_query(text)


@dataclass(frozen=True)
class Run:
    """One stored run: what it took without the model, and the updates of its own nodes in their order."""

    spent: Spent
    nodes: int
    calls: int
    updates: list[dict[str, Any]] = field(repr=False)


@dataclass(frozen=True)
class Bench:
    """The collection and the store; `embedded` is what is not ours of a search."""

    collection: Collection
    store: Store
    embedded: Clock

    async def stored(self, name: str, gold: Gold, search: Remembering, id: str) -> Run:
        """Return a run as `sleuth ask` makes it, all of whose queries have been searched before."""
        model = Instant(SimulatedModel(gold, Simulation()))
        runs = RunService(self.store, Services(model=model, retriever=search, embedder=self.collection.embedder))
        began = Spent.so_far()
        events = [event async for event in runs.run(await runs.start(gold.question, name, thread=id))]
        spent = Spent.so_far() - began - model.clock.spent
        done = [each for each in events if isinstance(each, Step) and each.state == "finished"]
        [answer] = [each for each in events if isinstance(each, Answer)]
        updates = [each.update for each in done if each.thread == id]
        return Run(spent=spent, nodes=len(done), calls=answer.cost["calls"], updates=updates)

    async def in_memory(self, name: str, gold: Gold, search: Remembering, *, waits: bool = False) -> tuple[Spent, int]:
        """Return the same without a store; with a model that waits also how many rounds of calls there are."""
        model = Instant(SimulatedModel(gold, Simulation()), waits=waits)
        settings = METHODS[name].settings()
        context = Context(model=model, retriever=search, archive=MemoryArchive(), settings=settings)
        context = replace(context, embedder=self.collection.embedder)
        context = replace(context, hops=CheckpointerSubruns(saver=InMemorySaver(), context=context))
        compiled = METHODS[name].graph().compile()
        began = Spent.so_far()
        await compiled.ainvoke({"question": gold.question}, {"recursion_limit": RECURSION_LIMIT}, context=context)
        return Spent.so_far() - began - model.clock.spent, model.rounds

    async def floor(self, name: str, gold: Gold, updates: Sequence[dict[str, Any]], id: str) -> Spent:
        """Return the time of LangGraph alone with these updates, with two tasks per call as in `ModelCaller`."""
        left = iter(updates)
        more = len(updates)

        async def replay(_state: object) -> dict[str, Any]:
            nonlocal more
            update = next(left)
            await asyncio.gather(*map(_nested, (update.get("calls") or {}).values()))
            more -= 1
            return update

        graph = StateGraph(METHODS[name].state)
        graph.add_node(replay)
        graph.add_edge(START, "replay")
        graph.add_conditional_edges("replay", lambda _state: "replay" if more else END, ["replay", END])
        compiled = graph.compile(checkpointer=self.store.saver)
        config: Any = {"configurable": {"thread_id": id}, "recursion_limit": RECURSION_LIMIT}
        began = Spent.so_far()
        await compiled.ainvoke({"question": gold.question}, config, durability="sync")
        return Spent.so_far() - began


async def _nested(record: dict[str, Any]) -> None:
    @task
    async def call() -> dict[str, Any]:
        return record

    @task
    async def ask() -> dict[str, Any]:
        return await call()

    await ask()


@asynccontextmanager
async def bench(home: Path | None) -> AsyncIterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=home or Path(folder), runs=Path(folder) / "runs")
        if home is None:
            await ingest([EXAMPLES / "corpus"], settings=settings)
        embedder = None if settings.embedder == "none" else TimedEmbedder(make_embedder(settings))
        async with await Collection.open(settings, embedder=embedder) as collection, open_store(settings) as store:
            await collection.search(Query(text="warm up", k=1, mode="graph"))
            yield Bench(collection, store, embedder.clock if embedder else Clock())


async def measure(bench: Bench, name: str, golds: Sequence[Gold]) -> dict[str, float]:
    """Return one method over all questions; a first run of each kind warms up and does not count."""
    rounds, stored, memory, floor = 0, [], Spent(), Spent()
    search = Remembering(bench.collection)
    for number, gold in enumerate([golds[0], *golds]):
        if number == 1:
            rounds, stored, memory, floor = 0, [], Spent(), Spent()
            search, bench.embedded.spent = Remembering(bench.collection), Spent()
        rounds += (await bench.in_memory(name, gold, search, waits=True))[1]
        memory += (await bench.in_memory(name, gold, search))[0]
        stored.append(await bench.stored(name, gold, search, f"{name}-{number}"))
        floor += await bench.floor(name, gold, stored[-1].updates, f"{name}-{number}-floor")
    nodes, runs, own = sum(run.nodes for run in stored), len(stored), sum((run.spent for run in stored), Spent())
    found = search.clock.spent - bench.embedded.spent
    return {
        "calls": round(sum(run.calls for run in stored) / runs, 1),
        "nodes": round(nodes / runs, 1),
        "memory, ms/node": round(1000 * memory.wall / nodes, 2),
        "store, ms/node": round(1000 * own.wall / nodes, 2),
        "store, cpu ms/node": round(1000 * own.cpu / nodes, 2),
        "store, ms/run": round(1000 * own.wall / runs, 1),
        "floor, ms/node": round(1000 * floor.wall / nodes, 2),
        "floor/store": round(floor.cpu / own.cpu, 2),
        "search, ms/run": round(1000 * found.wall / runs, 1),
        "share at 1 s, %": round(100 * (own + found).wall / ((own + found).wall + rounds), 2),
    }


async def main(methods: list[str], home: Path | None, questions: Path, limit: int) -> dict[str, dict[str, float]]:
    measured: dict[str, dict[str, float]] = {}
    async with bench(home) as opened:
        every = await golds(opened.collection, questions)
        for name in methods:
            measured[name] = found = await measure(opened, name, every[:: max(1, len(every) // limit)][:limit])
            if len(measured) == 1:
                print(" " * 12 + "".join(f"{key:>19}" for key in found))
            print(f"{name:12}" + "".join(f"{value:>19}" for value in found.values()), flush=True)
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--home", type=Path, help="a SLEUTH_HOME")
    parser.add_argument("--questions", type=Path, default=EXAMPLES / "questions.jsonl")
    parser.add_argument("--limit", type=int, default=8)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = asyncio.run(main(given.methods, given.home, given.questions, given.limit))
    if given.json:
        write_json(given.json, {"questions": given.limit, "methods": result})
    fits = (each["share at 1 s, %"] <= MOST_SHARE and each["store, ms/node"] <= MOST_MS for each in result.values())
    sys.exit(0 if all(fits) else 1)
