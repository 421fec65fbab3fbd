"""The compiled embedding model against sentence-transformers on torch: speed, start, memory, likeness, recall.

    python benchmarks/embedding_backends.py CORPUS QUESTIONS [--limit N] [--rounds R] [--vectors FOLDER] [--recall]

Prints JSON. Times are those of one processor, in turns within one process: the seconds that it works, which
depend little on what else a machine does, and those of the clock. Start and memory are those of a process of its own
that embeds one question, with the model compiled before.
`--recall` embeds everything with both (kept in --vectors, if given) and compares dense and hybrid search.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.tools.documents import Passage
from sleuth.tools.embedder import LocalEmbedder, Vectors
from sleuth.tools.keywords import KeywordIndex
from sleuth.tools.search import Scored, depth, fuse
from sleuth.tools.vectors import index_text

MODEL = "all-MiniLM-L6-v2"
BACKENDS = ("torch", "compiled")
DEPTHS = (2, 5, 20)
BATCH = 256


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def embedder(backend: str, cache: Path) -> LocalEmbedder:
    return LocalEmbedder(MODEL, cache=cache if backend == "compiled" else None)


def start(backend: str, cache: Path) -> dict[str, float]:
    began = time.perf_counter()
    embedder(backend, cache).embed_query("Who rules the kingdom?")
    # Not from getrusage: there a child begins with its parent's peak.
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    wall = time.perf_counter() - began
    return {"cpu_s": time.process_time(), "wall_s": wall, "peak_mib": int(peak.split()[1]) / 1024}


def start_apart(backend: str, cache: Path) -> dict[str, float]:
    command = [sys.executable, __file__, ".", ".", "--start", backend, "--cache", str(cache)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


@contextmanager
def one_processor() -> Iterator[None]:
    """Threads that wait for each other on a busy machine spend its time: there are none here."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(all_of_them)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


def speed(texts: list[str], rounds: int, cache: Path) -> dict[str, Any]:
    both = {backend: embedder(backend, cache) for backend in BACKENDS}
    made = {backend: each.embed_passages(texts[:8]) for backend, each in both.items()}
    spent = {backend: np.zeros(2) for backend in BACKENDS}
    for turn in range(rounds):
        for backend in BACKENDS if turn % 2 == 0 else reversed(BACKENDS):
            before = np.array([time.process_time(), time.perf_counter()])
            made[backend] = both[backend].embed_passages(texts)
            spent[backend] += np.array([time.process_time(), time.perf_counter()]) - before
    cosines = (made["torch"] * made["compiled"]).sum(axis=1)
    rates = {backend: {"cpu_ms_per_text": 1000 * spent[backend][0] / rounds / len(texts)} for backend in BACKENDS}
    ratios = spent["torch"] / spent["compiled"]
    likeness = {"least": float(cosines.min()), "mean": float(cosines.mean())}
    return {**rates, "times_faster": {"cpu": ratios[0], "wall": ratios[1]}, "cosine": likeness}


def vectors(backend: str, name: str, texts: list[str], cache: Path, kept: Path) -> Vectors:
    file = kept / f"{backend}-{name}.npy"
    if not file.exists():
        model = embedder(backend, cache)
        parts = [model.embed_passages(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
        np.save(file, np.concatenate(parts))
    stored: Vectors = np.load(file)
    return stored


def by_words(passages: list[Passage], questions: list[str], folder: Path, k: int) -> list[Scored]:
    index = KeywordIndex(folder)
    for at in range(0, len(passages), 1000):
        index.apply(upsert=passages[at : at + 1000], delete=[])
    found = [index.search(question, k) for question in questions]
    index.close()
    return found


def shares(found: list[Scored], golds: list[set[str]]) -> dict[str, float]:
    tops = {
        k: [len(gold & {id_ for id_, _ in hits[:k]}) / len(gold) for hits, gold in zip(found, golds, strict=True)]
        for k in DEPTHS
    }
    return {f"recall@{k}": round(100 * float(np.mean(values)), 2) for k, values in tops.items()}


def recall(args: argparse.Namespace, cache: Path, kept: Path) -> dict[str, Any]:
    passages = [
        Passage(
            id=row["id"], document_id=row["id"], title=row["title"], text=row["text"], start=0, end=len(row["text"])
        )
        for row in rows(args.corpus)
    ]
    asked = [row for row in rows(args.questions) if row.get("gold_ids")]
    golds, texts = [set(row["gold_ids"]) for row in asked], [row["question"] for row in asked]
    name, k, ids = args.corpus.parent.name, depth(max(DEPTHS)), np.array([passage.id for passage in passages])
    with tempfile.TemporaryDirectory() as scratch:
        words = by_words(passages, texts, Path(scratch), k)
    result: dict[str, Any] = {"questions": len(asked), "keyword": shares(words, golds)}
    made = {
        backend: (
            vectors(backend, f"{name}-corpus", [index_text(passage) for passage in passages], cache, kept),
            vectors(backend, f"{name}-questions", texts, cache, kept),
        )
        for backend in BACKENDS
    }
    for of_passages in BACKENDS:
        for of_questions in BACKENDS:
            cosines = made[of_questions][1] @ made[of_passages][0].T
            near = [[(str(ids[at]), float(row[at])) for at in np.argsort(-row)[:k]] for row in cosines]
            hybrid = [fuse(lists) for lists in zip(words, near, strict=True)]
            key = f"passages {of_passages}, questions {of_questions}"
            result[key] = {"dense": shares(near, golds), "hybrid": shares(hybrid, golds)}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--limit", type=int, default=512, help="passages for the times")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--recall", action="store_true")
    parser.add_argument("--vectors", type=Path, help="keep vectors here, and use those that are there")
    parser.add_argument("--cache", type=Path, help="keep the compiled model here")
    parser.add_argument("--start", choices=BACKENDS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        cache, kept = args.cache or Path(scratch), args.vectors or Path(scratch)
        if args.start:
            print(json.dumps(start(args.start, cache)))
            return
        texts = [f"{row['title']}. {row['text']}" for row in rows(args.corpus)][: args.limit]
        result: dict[str, Any] = {}
        if texts:
            with one_processor():
                result["speed"] = speed(texts, args.rounds, cache)
        result |= {"start": {backend: start_apart(backend, cache) for backend in BACKENDS}}
        result |= {"recall": recall(args, cache, kept)} if args.recall else {}
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
