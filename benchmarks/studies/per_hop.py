"""Search hop by hop: is each hop's passage found, and what do methods make of that?

    python -m benchmarks.studies.per_hop CORPUS QUESTIONS [--every N] [-k 5] [--methods NAME ...] [--simulate RATES]

CORPUS and QUESTIONS are JSON Lines, plain or gzipped; the questions have decompositions with gold ids. Prints one JSON
value. "search" asks each gold sub-question with earlier answers filled in, as the methods would: alone; as a hop; with
those answers as entities; and with the passages of earlier hops as seen. "recall" is the share of hops whose passage is
among the first; "read" counts those too that an earlier hop has found. With --methods, each runs every question with
the simulated model (see benchmarks/harness.py), whose steps find their answers only in what search finds.
"without" is graph search by the text of the query alone. Vectors take part unless SLEUTH_EMBEDDER=none.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.harness import Collection, Outcome, at_mode, collection, options, run
from sleuth.graphs.core import MethodSettings
from sleuth.graphs.evidence import short_names
from sleuth.graphs.registry import METHODS
from sleuth.studio.simulation import Gold, SimulatedModel, Simulation
from sleuth.studio.simulation.wording import mentions
from sleuth.tools.search import Mode, Query, Retriever
from sleuth.tools.types import Hit

DEPTHS = (1, 2, 5, 20)
BOOTSTRAPS = 1000
Ask = Callable[[Gold, int, set[str]], Query]


def alone(gold: Gold, hop: int, _seen: set[str]) -> Query:
    return Query(text=gold.asked(hop), k=max(DEPTHS), mode="graph")


def as_hop(gold: Gold, hop: int, seen: set[str]) -> Query:
    return replace(alone(gold, hop, seen), hop=True)


def with_entities(gold: Gold, hop: int, seen: set[str]) -> Query:
    known = short_names(gold.hops[need - 1].answer for need in gold.hops[hop].needs())
    return replace(as_hop(gold, hop, seen), entities=known)


def with_seen(gold: Gold, hop: int, seen: set[str]) -> Query:
    return replace(with_entities(gold, hop, seen), seen=frozenset(seen))


def by_words(gold: Gold, hop: int, seen: set[str]) -> Query:
    return replace(alone(gold, hop, seen), mode="keyword")


ASKED: dict[str, Ask] = {
    "keyword": by_words,
    "graph, alone": alone,
    "graph, as a hop": as_hop,
    "graph, and with entities": with_entities,
    "graph, and with seen": with_seen,
}


async def searched(known: Collection, ask: Ask, k: int) -> dict[str, Any]:
    """Return recall over hops, and how many of them have been read by then."""
    ranks: list[list[int | None]] = []
    read: list[list[float]] = []
    for gold in known.golds:
        seen: set[str] = set()
        ranks.append([])
        read.append([])
        for hop, wanted in enumerate(gold.hops):
            found = [hit.passage.id for hit in await known.library.search(ask(gold, hop, seen))]
            ranks[-1].append(found.index(wanted.passage) if wanted.passage in found else None)
            seen |= set(found[:k])
            read[-1].append(float(wanted.passage in seen))
    recall = {
        f"recall@{depth}": _over_hops([[_within(rank, depth) for rank in own] for own in ranks]) for depth in DEPTHS
    }
    return {**recall, f"read@{k}": _over_hops(read)}


def _within(rank: int | None, depth: int) -> float:
    return float(rank is not None and rank < depth)


def _over_hops(by_question: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean over hops in per cent, with a 95 % bootstrap interval over questions."""
    rng = np.random.default_rng(0)
    draws = (rng.integers(len(by_question), size=len(by_question)) for _ in range(BOOTSTRAPS))
    means = [np.mean([value for at in draw for value in by_question[at]]) for draw in draws]
    whole = np.mean([value for own in by_question for value in own])
    return [round(100 * float(value), 1) for value in (whole, *np.quantile(means, [0.025, 0.975]))]


@dataclass
class ByText:
    """A retriever that receives only the query's text."""

    retriever: Retriever

    async def search(self, query: Query) -> list[Hit]:
        return await self.retriever.search(Query(text=query.text, k=query.k, mode=query.mode))


async def answered(
    name: str, known: Collection, settings: MethodSettings, retriever: Retriever, rates: str
) -> dict[str, Any]:
    """Return the outcomes of a method's simulated runs, and the number of hops with the right answer."""
    ends: list[Outcome] = []
    for gold in known.golds:
        model = SimulatedModel(gold, Simulation.parse(rates))
        ends.append(await run(name, gold, model, retriever, embedder=known.embedder, settings=settings))
    shares = {kind: _over_hops([[float(end.kind == kind)] for end in ends]) for kind in ("right", "refused", "wrong")}
    hops = [[float(_found(end, hop.answer)) for hop in gold.hops] for gold, end in zip(known.golds, ends, strict=True)]
    return {**shares, "hops": _over_hops(hops), "calls": round(sum(end.calls for end in ends) / len(ends), 2)}


def _found(end: Outcome, answer: str) -> bool:
    return any(mentions(note["finding"], answer) for note in end.state["notes"].values())


async def main() -> None:
    wanted = options(__doc__, "corpus", "questions", "every", "k", "methods", "simulate", "home").parse_args()
    async with collection(wanted.corpus, wanted.questions, "graph", home=wanted.home) as whole:
        known = replace(whole, golds=whole.golds[:: wanted.every])
        search = {name: await searched(known, ask, wanted.k) for name, ask in ASKED.items()}
        ways: dict[str, tuple[Mode, Retriever]] = {
            "keyword": ("keyword", known.library),
            **({"hybrid": ("hybrid", known.library)} if known.library.embedder else {}),
            "graph, without": ("graph", ByText(known.library)),
            "graph": ("graph", known.library),
        }
        methods: dict[str, dict[str, Any]] = {name: {} for name in wanted.methods}
        for name, way in itertools.product(wanted.methods, ways):
            mode, retriever = ways[way]
            settings = at_mode(METHODS[name].settings(), mode)
            methods[name][way] = await answered(name, known, settings, retriever, wanted.simulate)
            print(f"{name}, {way}: {methods[name][way]}", file=sys.stderr, flush=True)
        hops = sum(len(gold.hops) for gold in known.golds)
    print(json.dumps({"questions": len(known.golds), "hops": hops, "search": search, "methods": methods}, indent=1))


if __name__ == "__main__":
    asyncio.run(main())
