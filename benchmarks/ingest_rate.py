"""Rate of ingestion, compared with sentence-transformers on torch alone, on the same texts in the same run.

    python -m benchmarks.ingest_rate CORPUS [--limit N] [--rounds R]

The two are timed in turns, each in a process of its own; the rate is that of all rounds together, loading included in
neither. Peak memory is that of the process that ingests.
"""

import argparse
import asyncio
import gzip
import json
import tempfile
import time
from itertools import islice
from pathlib import Path

from benchmarks.harness import in_own_process
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.documents.resource_limits import peak_megabytes
from sleuth.tools.search.vectors import make_embedder
from sleuth.tools.search.vectors.embedder import find_packaged, load_torch
from sleuth.tools.settings import Settings


def lines(path: Path, limit: int | None) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return list(islice(file, limit))


def alone(corpus: Path) -> dict[str, float]:
    """Embed all texts in one call with sentence-transformers on torch."""
    rows = [json.loads(line) for line in lines(corpus, None)]
    name = Settings().embedder
    encode = load_torch(name, find_packaged(name))
    encode(["warm up"])
    began = time.perf_counter()
    encode([f"{row['title']}. {row['text']}" for row in rows])
    return {"seconds": time.perf_counter() - began}


def whole(corpus: Path) -> dict[str, float]:
    """Ingest: reading, catalogue, keyword index, embedding, Chroma, checkpoints."""
    with tempfile.TemporaryDirectory() as home:
        embedder = make_embedder(Settings(home=Path(home)))
        embedder.embed_query("warm up")
        report = asyncio.run(ingest([corpus], settings=Settings(home=Path(home)), embedder=embedder))
    return {"seconds": report.seconds, "passages": report.passages, "peak_mib": peak_megabytes()}


def compare(corpus: Path, rounds: int) -> None:
    seconds = {alone: 0.0, whole: 0.0}
    passages = peak = 0.0
    for turn in range(rounds):
        for work in (alone, whole) if turn % 2 == 0 else (whole, alone):
            result = in_own_process(work, corpus)
            seconds[work] += result["seconds"]
            passages += result.get("passages", 0)
            peak = max(peak, result.get("peak_mib", 0))
    print(f"{'':24}{'seconds':>10}{'passages/s':>12}")
    print(f"{'sentence-transformers':24}{seconds[alone]:10.1f}{passages / seconds[alone]:12.1f}")
    print(f"{'sleuth ingest':24}{seconds[whole]:10.1f}{passages / seconds[whole]:12.1f}")
    print(f"share of the rate: {100 * seconds[alone] / seconds[whole]:.1f} %, peak memory {peak:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--limit", type=int, help="only the first passages")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "corpus.jsonl"
        part.write_text("".join(lines(args.corpus, args.limit)), encoding="utf-8")
        compare(part, args.rounds)


if __name__ == "__main__":
    main()
