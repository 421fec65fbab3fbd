"""Latency of listing, filtering and searching runs, with the plan of each query.

    python -m benchmarks.listed_runs [--runs 10000] [--repeats 50] [--database sqlite|postgres]

The runs are rows of a new store, with questions about invented names and an answer each. A Postgres server is started
for the measurement. Prints p50 and p95, in ms, of a page of 50 runs, and the indexes that the query uses, or that it
reads a whole table.
"""

import argparse
import asyncio
import random
import re
from contextlib import ExitStack
from tempfile import TemporaryDirectory

import numpy as np
from sqlalchemy import text

from benchmarks.harness import clock
from benchmarks.servers import postgres
from sleuth.graphs.core.answer import Status
from sleuth.graphs.persistence import RunFilter, RunResult, Store, Thread, open_store
from sleuth.graphs.persistence.thread_tables import select_runs
from sleuth.tools.settings import Settings

OUTCOMES: tuple[Status, ...] = ("answered", "answered", "answered", "unknown", "refused", "out_of_budget")
METHODS = ("par-rag", "plain-rag", "auto", "ras")
PAGE = 50
READ = re.compile(r"(?<=INDEX )\w+|(?<=using )\w+|(?<=Index Scan on )\w+|SCAN \w+|Seq Scan on \w+")


async def fill(store: Store, runs: int) -> None:
    """Add finished runs; each name is in about ten questions."""
    dice = random.Random(7)
    for number in range(runs):
        name, at = f"Nomen{dice.randrange(max(1, runs // 10))}", f"2026-01-01T00:00:{number:08}"
        thread = Thread(
            id=f"run{number}",
            owner="local",
            method=dice.choice(METHODS),
            question=f"Which fair is held in the birthplace of the builder of {name}?",
            updated_at=at,
        )
        await store.threads.add(thread)
        result = RunResult(
            verdict=dice.choice(OUTCOMES), answer=f"Kelp Fair {number}", calls=7, tokens=3_000, seconds=4
        )
        await store.threads.set_state(thread.id, "done", at=at, result=result)


def cases(runs: int) -> dict[str, RunFilter]:
    """Return the measured filters by name."""
    middle = f"2026-01-01T00:00:{runs // 2:08}"
    return {
        "latest": RunFilter(with_subruns=False),
        "page in the middle": RunFilter(before=middle, before_id=f"run{runs // 2}", with_subruns=False),
        "one status": RunFilter(outcomes=("refused",), with_subruns=False),
        "one method": RunFilter(methods=("ras",), with_subruns=False),
        "a rare word": RunFilter(find="nomen7", with_subruns=False),
        "a word of all runs": RunFilter(find="kelp", with_subruns=False),
        "two words and a status": RunFilter(find="nomen7 kelp", outcomes=("unknown",), with_subruns=False),
        "no match": RunFilter(find="nobody", with_subruns=False),
    }


def plan_of(store: Store, wanted: RunFilter) -> str:
    """Return the plan of a query."""
    query = select_runs("local", wanted, PAGE).compile(store.engine, compile_kwargs={"literal_binds": True})
    explain = "EXPLAIN" if store.engine.name == "postgresql" else "EXPLAIN QUERY PLAN"
    with store.engine.connect() as connection:
        return "\n".join(str(row[-1]) for row in connection.execute(text(f"{explain} {query}")))


async def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        url = stack.enter_context(postgres()).url if given.database == "postgres" else None
        async with open_store(Settings(home=folder, runs=None, database_url=url)) as store:
            await fill(store, given.runs)
            if url:
                with store.engine.begin() as connection:
                    connection.execute(text("ANALYZE"))
            for name, wanted in cases(given.runs).items():
                times = []
                for _ in range(given.repeats):
                    with clock() as taken:
                        found = await store.threads.search(wanted, PAGE)
                    times.append(1000 * taken.spent.wall)
                p50, p95 = np.quantile(times, (0.5, 0.95))
                used = ", ".join(dict.fromkeys(each[0] for each in READ.finditer(plan_of(store, wanted))))
                print(f"{name:24} {len(found):3} runs {p50:7.1f} {p95:7.1f} ms  {used}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
