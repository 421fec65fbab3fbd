"""A new server's indexes: fetched as snapshots from Postgres, or built from the catalogue.

    python -m benchmarks.index_snapshots [--passages 10000 100000] [--json FILE]

Ingests generated passages (`benchmarks/growth/corpus.py`) without vectors into Postgres. Then a second SLEUTH_HOME gets
its keyword index and entity graph, once with the stored snapshots and once without them. Prints JSON: seconds by the
clock and of the processor, passages indexed, and megabytes in Postgres.
"""

import argparse
import asyncio
import json
import shutil
import tempfile
from pathlib import Path

from sqlalchemy import create_engine, text

from benchmarks.growth.corpus import write
from benchmarks.harness import clock, in_own_process, write_json
from benchmarks.servers import postgres
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.collection import Collection
from sleuth.tools.search.vectors import NoEmbedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage import catalogue_url

Row = dict[str, float]


def ingested(settings: Settings, corpus: Path) -> None:
    asyncio.run(ingest([corpus], settings=settings))


def opened(settings: Settings) -> Row:
    """Return the time until the indexes of a new home are up to date."""

    async def work() -> Row:
        indexed = 0

        def count(_name: str, passages: int) -> None:
            nonlocal indexed
            indexed += passages

        async with await Collection.open(settings, embedder=NoEmbedder()) as collection:
            with clock() as taken:
                await collection.catch_up(on_indexed=count)
        return {"seconds": round(taken.spent.wall, 2), "cpu": round(taken.spent.cpu, 2), "indexed": indexed}

    return asyncio.run(work())


def measure(passages: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name, postgres() as database:
        folder, corpus = Path(name), Path(name) / "corpus.jsonl"
        write(corpus, passages, 0)
        shared = {"database_url": database.url, "embedder": "none"}
        in_own_process(ingested, Settings(home=folder / "one", **shared), corpus)
        fetched = in_own_process(opened, Settings(home=folder / "two", **shared))
        with create_engine(catalogue_url(folder, database.url)).begin() as connection:
            size = connection.scalar(text("SELECT sum(length(data)) FROM sleuth_snapshot_chunks"))
            connection.execute(text("DELETE FROM sleuth_snapshots"))
        shutil.rmtree(folder / "two")
        built = in_own_process(opened, Settings(home=folder / "two", **shared))
    return {"passages": passages, "snapshots_mb": round(size / 1e6, 1), "fetched": fetched, "built": built}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = [measure(passages) for passages in given.passages]
    print(json.dumps(found, indent=1))
    if given.json:
        write_json(given.json, found)


if __name__ == "__main__":
    main()
