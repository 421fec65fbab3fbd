"""Measurements at one size, each in its own process: ingestion and search.

python -m benchmarks.growth.measures ingest|search JSON      (passages.py runs it)
"""

import asyncio
import json
import resource
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.growth.corpus import passage, questions, triples_of
from sleuth.graphs.ingestion import ingest
from sleuth.tools.collection import Collection, corpus_entry
from sleuth.tools.documents import CorpusLine
from sleuth.tools.search import Mode, Query
from sleuth.tools.search.vectors import Embedder, NoEmbedder, Vectors
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold

DIMENSION, BUCKETS = 384, 1 << 15
K, CHANGES, AT_ONCE = 10, 30, 1_000
MODES: tuple[Mode, ...] = ("keyword", "dense", "hybrid", "graph")


class Projected:
    """Vectors without a model: a text is the sum of random directions, one for each of its longer words."""

    name = "projected"

    def __init__(self) -> None:
        self.seconds = 0.0
        self._directions = np.random.default_rng(0).standard_normal((BUCKETS, DIMENSION), dtype=np.float32)

    def embed_passages(self, texts: list[str]) -> Vectors:
        began = time.perf_counter()
        rows = np.stack([self.embed_query(text) for text in texts])
        self.seconds += time.perf_counter() - began
        return rows

    def embed_query(self, text: str) -> Vectors:
        words = [word for word in text.lower().split() if len(word) > 4] or [text]
        at = [zlib.crc32(word.strip(".?").encode()) % BUCKETS for word in words]
        vector = self._directions[at].sum(axis=0)
        unit: Vectors = vector / max(float(np.linalg.norm(vector)), 1e-9)
        return unit


@dataclass
class Clock:
    wall: float = 0.0
    processor: float = 0.0


@contextmanager
def clock() -> Iterator[Clock]:
    taken, began, worked = Clock(), time.perf_counter(), time.process_time()
    yield taken
    taken.wall, taken.processor = time.perf_counter() - began, time.process_time() - worked


def peak_mib() -> float:
    """Return this process's peak memory; `getrusage` may include the parent process."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def embedder_of(name: str) -> Embedder:
    return NoEmbedder() if name == "none" else Projected()


def settings_of(given: dict[str, Any]) -> Settings:
    own = {name: given[name] for name in ("home", "collection", "database_url", "chroma_url")}
    return Settings(**own, embedder="none", runs=None, ranker="trained")


async def read_in(given: dict[str, Any]) -> dict[str, float]:
    """Ingest the corpus; the embedder's time is measured separately, since it is cheaper than any model."""
    embedder = embedder_of(given["embedder"])
    with clock() as taken:
        report = await ingest([Path(given["corpus"])], settings=settings_of(given), embedder=embedder)
    assert report.passages == given["passages"], report
    embedding = getattr(embedder, "seconds", 0.0)
    return {
        "ingest_s": taken.wall,
        "ingest_cpu_s": taken.processor,
        "embedding_s": embedding,
        "passages_a_second": given["passages"] / (taken.wall - embedding),
        "ingest_mib": peak_mib(),
    }


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def search(library: Collection, mode: Mode, asked: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Search; `found` is how often the passage at the end of the question is among the first ten."""
    with clock() as first:
        await library.search(Query(text=asked[0][0], k=K, mode=mode))
    taken, found = [], 0
    for text, gold in asked:
        with clock() as each:
            hits = await library.search(Query(text=text, k=K, mode=mode))
        taken.append(each)
        found += gold in {hit.passage.id for hit in hits}
    return {
        f"{mode}_first_ms": 1000 * first.wall,
        f"{mode}_first_cpu_ms": 1000 * first.processor,
        f"{mode}_p50_ms": 1000 * quantile([each.wall for each in taken], 0.5),
        f"{mode}_p95_ms": 1000 * quantile([each.wall for each in taken], 0.95),
        f"{mode}_p50_cpu_ms": 1000 * quantile([each.processor for each in taken], 0.5),
        f"{mode}_p95_cpu_ms": 1000 * quantile([each.processor for each in taken], 0.95),
        f"{mode}_found": found / len(asked),
    }


async def change(library: Collection, given: dict[str, Any]) -> dict[str, float]:
    """Return one document more, or less, in every index."""
    added, deleted = [], []
    for number in range(given["passages"], given["passages"] + CHANGES):
        new = corpus_entry(source="growth", line=CorpusLine(**passage(number, given["seed"])))
        with clock() as each:
            await library.put([new])
            await library.catch_up()
        added.append(each.wall)
        with clock() as each:
            await library.delete([new.document.id])
        deleted.append(each.wall)
    return {"add_one_ms": 1000 * quantile(added, 0.5), "delete_one_ms": 1000 * quantile(deleted, 0.5)}


async def tell(library: Collection, given: dict[str, Any]) -> int:
    """Put every passage's triples in, and returns how many."""
    marks, store, told = await asyncio.to_thread(library.triple_stats.fingerprints), library.triples(model="growth"), 0
    numbers = range(given["passages"])
    for start in numbers[::AT_ONCE]:
        found = {marks[f"p{at:07}"]: triples_of(at, given["seed"]) for at in numbers[start : start + AT_ONCE]}
        await store.put(found, version="1")
        told += sum(map(len, found.values()))
    return told


async def walks(library: Collection, given: dict[str, Any], asked: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Measure graph search by PageRank over triples, and the first question after a change."""
    measured = {"triples": await tell(library, given), "ppr_before_mib": peak_mib()}
    measured |= await search(library, "graph-ppr", asked)
    new = corpus_entry(source="growth", line=CorpusLine(**passage(given["passages"], given["seed"])))
    await library.put([new])
    await library.catch_up()
    with clock() as first:
        await library.search(Query(text=asked[0][0], k=K, mode="graph-ppr"))
    changed = {"graph-ppr_changed_ms": 1000 * first.wall, "graph-ppr_changed_cpu_ms": 1000 * first.processor}
    return measured | changed | {"graph-ppr_mib": peak_mib()}


async def ask(given: dict[str, Any]) -> dict[str, float]:
    settings, embedder = settings_of(given), embedder_of(given["embedder"])
    modes = [mode for mode in MODES if given["embedder"] != "none" or mode in ("keyword", "graph")]
    asked = questions(given["passages"], given["seed"], given["questions"])
    measured: dict[str, float] = {}
    async with (
        hold(settings.home, "exclusive", command="growth"),
        await Collection.open(settings, embedder=embedder) as library,
    ):
        for mode in modes:
            measured |= await search(library, mode, asked)
        measured["search_mib"] = peak_mib()
        measured |= await change(library, given)
        return measured | await walks(library, given, asked)


def main() -> None:
    what, given = sys.argv[1], json.loads(sys.argv[2])
    print(json.dumps(asyncio.run(read_in(given) if what == "ingest" else ask(given))))


if __name__ == "__main__":
    main()
