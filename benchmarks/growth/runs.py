"""Cost of thousands of runs in one store: creating, listing, pruning.

    python -m benchmarks.growth.runs --out FOLDER [--threads 1000 2000 10000] [--database sqlite|postgres]

The runs are plain RAG's with a model that answers immediately and passages of their own for each, so that every run
leaves five of 700 characters in the archive, and a prompt. The store grows from one number to the next; each is
measured by processes of their own, and pruned in copies: once all but the last checkpoint of each run, once the older
half of the runs. What is in FOLDER/runs.json (runs-postgres.json) is not measured again: if killed, rerun the same
command to resume. A Postgres server is started for as long as it is needed, and filled again. Prints each measure and
its exponent: 1 is linear.
"""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import psycopg

from benchmarks.checkpoint_bytes import Shelf
from benchmarks.growth.fits import Row, read_rows, table
from benchmarks.harness import Instant, clock, in_own_process, write_json
from benchmarks.servers import postgres
from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.pruning import prune
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.documents.resource_limits import peak_megabytes
from sleuth.tools.settings import Settings

REPEATS, RECENT = 20, 200


@dataclass(frozen=True)
class RunStore:
    """runs.sqlite below a home, or a Postgres database; it can be copied."""

    home: Path
    url: str | None = None

    def settings(self) -> Settings:
        return Settings(home=self.home, runs=None, database_url=self.url)

    def sizes(self) -> Row:
        """Return megabytes."""
        if self.url:
            tables = "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables"
            with psycopg.connect(self.url) as connection:
                (size,) = connection.execute(tables).fetchone() or (0,)
            return {"file_mb": int(size) / 1e6}
        return {"file_mb": (self.home / "runs.sqlite").stat().st_size / 1e6}

    @contextmanager
    def copied(self) -> Iterator["RunStore"]:
        if self.url:
            parts = urlsplit(self.url)
            name = parts.path.removeprefix("/")
            with psycopg.connect(parts._replace(path="/template1").geturl(), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name}".encode())
                yield replace(self, url=parts._replace(path=f"/{name}_copy").geturl())
                connection.execute(f"DROP DATABASE {name}_copy WITH (FORCE)".encode())
            return
        copy = self.home.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.home, copy)
        yield RunStore(copy)
        shutil.rmtree(copy)


async def make(place: RunStore, threads: int) -> Row:
    """Create runs until the store has this many."""
    async with open_store(place.settings()) as store:
        runs, taken = RunService(store, Services(model=Instant(), retriever=Shelf())), []
        for number in range(len(await store.threads.list_newest()), threads):
            with clock() as each:
                await last_answer(
                    runs.run(
                        await runs.start(
                            RunRequest(question=f"Who kept the light of number {number}?", method="plain-rag")
                        )
                    )
                )
            taken.append(1000 * each.spent.wall)
    return {"run_ms": median(taken[-RECENT:]), "make_mib": peak_megabytes()} if taken else {}


async def look(place: RunStore) -> Row:
    """Measure the list's first page."""
    async with open_store(place.settings()) as store:
        taken = []
        for _ in range(REPEATS):
            with clock() as each:
                await store.threads.list_newest(limit=50)
            taken.append(1000 * each.spent.wall)
        return {"list_50_ms": median(taken)}


async def remove(place: RunStore, name: str) -> Row:
    """Prune all but the last checkpoint of each run ("keep_last"), or the older half of the runs ("older_half")."""
    async with open_store(place.settings()) as store:
        every = await store.threads.list_newest()
        age = (datetime.now(UTC) - datetime.fromisoformat(every[len(every) // 2].updated_at)).total_seconds()
        older_than, keep = (None, 1) if name == "keep_last" else (age, None)
        with clock() as taken:
            gone = await prune(RunService(store), older_than=older_than, keep_last=keep)
    row = {"prune_s": taken.spent.wall, "prune_mib": peak_megabytes()} | place.sizes()
    row |= {"runs": gone.threads, "checkpoints": gone.checkpoints, "texts": gone.texts}
    return {f"{name}_{key}": value for key, value in row.items()}


def run(stage: Callable[..., Coroutine[Any, Any, Row]], *given: object) -> Row:
    return asyncio.run(stage(*given))


def measure(place: RunStore, threads: int) -> Row:
    row: Row = {"threads": threads} | in_own_process(run, make, place, threads) | place.sizes()
    row |= in_own_process(run, look, place)
    for name in ("keep_last", "older_half"):
        with place.copied() as copy:
            row |= in_own_process(run, remove, copy, name)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1_000, 2_000, 10_000])
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    given = parser.parse_args()
    with ExitStack() as stack:
        place, file = RunStore(given.out / "home"), given.out / "runs.json"
        if given.database == "postgres":
            server = stack.enter_context(postgres())
            place, file = RunStore(given.out / "home-postgres", server.url), given.out / "runs-postgres.json"
        rows = read_rows(file)
        for threads in sorted(set(given.threads) - {row["threads"] for row in rows}):
            print(f"{threads} runs", file=sys.stderr)
            rows.append(measure(place, threads))
            write_json(file, rows)
    print(table(rows, "threads"))


if __name__ == "__main__":
    main()
