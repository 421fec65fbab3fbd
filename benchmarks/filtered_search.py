"""Latency of searches with a filter, relative to the same searches without one.

    python -m benchmarks.filtered_search --out FOLDER [--passages 50000] [--questions 100]

Passages come from `benchmarks.growth.corpus`, vectors of 384 numbers from words, as in `benchmarks.growth.passages`.
Filters leave 0.1 to 50 % of the passages. Each question is asked without and with each filter in turn, so that both
have the same load of the machine; the first question of each warms up. Prints p50 and p95, in ms, and the ratios.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.growth.corpus import line_of, questions
from benchmarks.harness import Projected, clock, write_json
from sleuth.tools.collection import Collection
from sleuth.tools.ingestion.batch_reader import make_entry
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.search import Mode, Query
from sleuth.tools.settings import Settings

SHARES = (0.001, 0.01, 0.1, 0.5)
MODES: tuple[Mode, ...] = ("keyword", "dense", "hybrid", "graph")
BATCH = 2_000
Milliseconds = dict[tuple[Mode, float], list[float]]


def tags_of(number: int) -> tuple[str, ...]:
    """Return a tag for each filter that a passage matches; those of small shares are spread evenly."""
    return tuple(f"share{share:g}" for share in SHARES if number % round(1 / share) == 0)


async def fill(collection: Collection, passages: int) -> None:
    """Ingest what is missing."""
    _, known = await collection.count()
    for start in range(known, passages, BATCH):
        numbers = range(start, min(start + BATCH, passages))
        lines = [replace(line_of(number), tags=tags_of(number)) for number in numbers]
        await Ingestion(collection).put(
            [make_entry(document_id=line.id, source="filtered.jsonl", loaded=line) for line in lines]
        )
        await collection.catch_up()


async def measure(collection: Collection, asked: Sequence[str]) -> Milliseconds:
    """Return the times of searches by mode and share; share 1 is a search without a filter."""
    times: Milliseconds = {(mode, share): [] for mode in MODES for share in (1.0, *SHARES)}
    for number, text in enumerate(asked):
        for (mode, share), found in times.items():
            where = "" if share == 1 else f"tag=share{share:g}"
            with clock() as taken:
                await collection.search(Query(text=text, k=10, mode=mode, where=where))
            if number:
                found.append(1000 * taken.spent.wall)
    return times


async def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--questions", type=int, default=100)
    given = parser.parse_args()
    settings = Settings(home=given.out / f"home-{given.passages}", runs=None)
    async with await Collection.open(settings, embedder=Projected()) as collection:
        await fill(collection, given.passages)
        times = await measure(collection, [text for text, _ in questions(given.passages, 0, given.questions + 1)])
    rows = {}
    print(f"{'mode':8} {'share':>6} {'p50':>7} {'p95':>7} {'ratio':>6}  (p95, to the search without a filter)")
    for (mode, share), found in times.items():
        p50, p95 = np.quantile(found, (0.5, 0.95))
        ratio = p95 / np.quantile(times[mode, 1.0], 0.95)
        rows[f"{mode} {share:g}"] = {"p50_ms": p50, "p95_ms": p95, "ratio": ratio}
        print(f"{mode:8} {share:6.1%} {p50:7.1f} {p95:7.1f} {ratio:6.2f}")
    write_json(given.out / f"filtered-{given.passages}.json", rows)


if __name__ == "__main__":
    asyncio.run(main())
