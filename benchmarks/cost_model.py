"""Costs of collections that are larger than measured ones: a model, not a measurement.

    python -m benchmarks.cost_model [--passages 1000000 10000000 100000000] [--cores 16] [--memory-gib 64] [--json FILE]

Extends measured costs from 300,000 passages: times by power laws with the larger of the exponents over all sizes and
over the last two, bytes linearly. Passages have 580 bytes, vectors 384 numbers. `--embed-ms` is the processor time of
the embedder for a passage (`--measure` measures the default one), `--answer-ms` that of a run of plain RAG without
search. Prints a table in Markdown with the part that exceeds a machine first.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.growth.fits import Row, exponents
from benchmarks.harness import write_json
from sleuth.tools.search.vectors import make_embedder
from sleuth.tools.settings import Settings

MEASURED: list[Row] = [
    {
        "passages": 10_000,
        "ingestion, s cpu": 8.0,
        "ingestion with vectors, s cpu": 17,
        "keyword search, ms": 2.0,
        "dense search, ms": 3.9,
        "graph search, ms cpu": 56,
        "first dense search, ms": 1_572,
    },
    {
        "passages": 100_000,
        "ingestion, s cpu": 90,
        "ingestion with vectors, s cpu": 478,
        "keyword search, ms": 2.7,
        "dense search, ms": 6.7,
        "graph search, ms cpu": 69,
        "first dense search, ms": 4_195,
    },
    {
        "passages": 300_000,
        "ingestion, s cpu": 283,
        "ingestion with vectors, s cpu": 1_925,
        "keyword search, ms": 3.3,
        "dense search, ms": 8.9,
        "graph search, ms cpu": 70,
        "first dense search, ms": 8_484,
    },
]
"""Times with SQLite and the embedded Chroma, commit `7a8dd1b`."""

BYTES: Row = {
    "catalogue, MB": 545,
    "keyword index, MB": 64,
    "entity graph, MB": 114,
    "vectors, MB": 598,
    "memory of vectors, MiB": 1_011 - 288,
}
"""Sizes at the last size of the times, which are linear; the memory of an embedded Chroma, without that of the rest."""

HOUR = 3600.0
NIGHT = 10.0
"""Hours that an ingestion of everything may take."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine that serves, and two costs that do not depend on the size of the collection."""

    cores: int
    memory_gib: float
    embed_ms: float
    answer_ms: float


def at(passages: int) -> Row:
    """Return each measure at another size."""
    last, fits = MEASURED[-1], exponents(MEASURED, "passages")
    factor = passages / last["passages"]
    times = {name: last[name] * factor ** max(exponent) for name, exponent in fits.items()}
    return times | {name: size * factor for name, size in BYTES.items()}


def costs(passages: int, machine: Machine) -> Row:
    """Return the costs of a collection; hours are those of one process, but of all cores for the embedder."""
    measured = at(passages)
    vectors = measured["ingestion with vectors, s cpu"] - measured["ingestion, s cpu"]
    search = measured["graph search, ms cpu"]
    indexes = measured["keyword index, MB"] + measured["entity graph, MB"]
    return {
        "passages": passages,
        "parse and index words and names, h": measured["ingestion, s cpu"] / HOUR,
        "embed, h": passages * machine.embed_ms / 1000 / machine.cores / HOUR,
        "insert vectors into Chroma, h": vectors / HOUR,
        "catalogue, GB": measured["catalogue, MB"] / 1000,
        "indexes of each server, GB": indexes / 1000,
        "vectors, GB": measured["vectors, MB"] / 1000,
        "memory of vectors, GiB": measured["memory of vectors, MiB"] / 1024,
        "keyword search, ms": measured["keyword search, ms"],
        "dense search, ms": measured["dense search, ms"],
        "graph search, ms": search,
        "first dense search, s": measured["first dense search, ms"] / 1000,
        "questions a second of a core": 1000 / (machine.answer_ms + search),
    }


def saturated(cost: Row, machine: Machine) -> str:
    """Return the part that exceeds its limit by the largest factor, or an empty text."""
    loads = {
        "inserting vectors": cost["insert vectors into Chroma, h"] / NIGHT,
        "embedding": cost["embed, h"] / NIGHT,
        "parsing and indexing": cost["parse and index words and names, h"] / NIGHT,
        "memory of the vectors": cost["memory of vectors, GiB"] / machine.memory_gib,
    }
    worst = max(loads, key=lambda name: loads[name])
    return f"{worst} ({loads[worst]:.1f} times)" if loads[worst] > 1 else "none"


def table(found: list[Row]) -> str:
    """Return a Markdown table with a column for each size."""
    head = ["passages", *(f"{row['passages']:,}" for row in found)]
    lines = [head, ["---"] * len(head)]
    for name in found[0]:
        if name != "passages":
            cells = [row[name] if isinstance(row[name], str) else f"{row[name]:,.3g}" for row in found]
            lines.append([name, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def embedding_ms(texts: int = 512) -> float:
    """Return the processor time of the default embedder for a passage of 80 words."""
    embedder = make_embedder(Settings())
    passages = [
        f"{number} " + "the lighthouse of the northern harbour was built by hand " * 8 for number in range(texts)
    ]
    embedder.embed_passages(passages[:32])
    began = time.process_time()
    embedder.embed_passages(passages)
    return 1000 * (time.process_time() - began) / texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, nargs="+", default=[1_000_000, 10_000_000, 100_000_000])
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--memory-gib", type=float, default=64)
    parser.add_argument("--embed-ms", type=float, default=45.0)
    parser.add_argument("--answer-ms", type=float, default=41.7, help="24 runs a second, measured 2026-11-20")
    parser.add_argument("--measure", action="store_true", help="measure --embed-ms, and print it only")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.measure:
        print(f"{embedding_ms():.1f} ms of processor time a passage")
        return
    options = {name: getattr(given, name) for name in ("cores", "memory_gib", "embed_ms", "answer_ms")}
    machine = Machine(**options)
    found = [costs(passages, machine) for passages in given.passages]
    found = [row | {"saturated first": saturated(row, machine)} for row in found]
    print(table(found))
    if given.json:
        write_json(given.json, {"machine": options, "costs": found})


if __name__ == "__main__":
    main()
