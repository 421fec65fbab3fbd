"""Recall and latency of search over a corpus with questions whose gold passages are known.

    python benchmarks/search_recall.py CORPUS QUESTIONS [--home FOLDER] [--limit N]

CORPUS and QUESTIONS are JSON Lines, plain or gzipped; the corpus is read in first (kept in --home, if given).
"""

import argparse
import asyncio
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sleuth.graphs.ingest import ingest
from sleuth.tools.library import Library
from sleuth.tools.retriever import Mode, Query
from sleuth.tools.settings import Settings

MODES: tuple[Mode, ...] = ("keyword", "dense", "hybrid")
DEPTHS = (2, 5, 20)


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def measure(library: Library, questions: list[dict[str, Any]], mode: Mode) -> str:
    await library.search(Query(text="warm up", mode=mode))
    recall = dict.fromkeys(DEPTHS, 0.0)
    seconds = []
    for question in questions:
        began = time.perf_counter()
        hits = await library.search(Query(text=question["question"], k=max(DEPTHS), mode=mode))
        seconds.append(time.perf_counter() - began)
        gold = set(question["gold_ids"])
        found = [hit.passage.id for hit in hits]
        for depth in DEPTHS:
            recall[depth] += len(gold.intersection(found[:depth])) / len(gold)
    shares = "".join(f"{100 * recall[depth] / len(questions):8.1f}" for depth in DEPTHS)
    return f"{mode:8}{shares}{1000 * quantile(seconds, 0.5):10.1f}{1000 * quantile(seconds, 0.95):10.1f}"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--home", type=Path, help="keep the store here")
    parser.add_argument("--limit", type=int, help="only the first questions")
    args = parser.parse_args()
    questions = [row for row in rows(args.questions) if row.get("gold_ids")][: args.limit]
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(home=args.home or Path(scratch))
        print(await ingest([args.corpus], settings=settings), file=sys.stderr)
        async with await Library.open(settings) as library:
            print(f"{len(questions)} questions\n{'mode':8}{'R@2':>8}{'R@5':>8}{'R@20':>8}{'p50 ms':>10}{'p95 ms':>10}")
            for mode in MODES:
                print(await measure(library, questions, mode))


if __name__ == "__main__":
    asyncio.run(main())
