"""Cost of thousands of runs in one store: creating, listing, history, pruning; and of a long run among them.

    python -m benchmarks.growth.runs --out FOLDER [--threads 1000 2000 10000] [--steps 40]
        [--database sqlite|postgres]

The runs are plain RAG's with a model that answers immediately and passages of their own for each, so that every run
leaves five of 700 characters in the archive, and a prompt. The store grows from one number to the next; each is
measured by processes of their own, and pruned in copies: once all but the last checkpoint of each run, once the older
half of the runs. What is in FOLDER/many_threads.json is not measured again: if killed, rerun the same command to
resume. A Postgres server is started for as long as it is needed (servers.py), and filled again. The exponents are those
of growth.py: 1 is linear.
"""

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.checkpoint_bytes import Shelf, replies
from benchmarks.growth.measures import clock, peak_mib
from benchmarks.growth.plot import exponents, table
from benchmarks.growth.run_stores import OnPostgres, OnSqlite, RunStore
from benchmarks.growth.servers import postgres
from benchmarks.streams import Instant
from sleuth.agents.llm import ScriptedModel
from sleuth.graphs.persistence import Store, open_store
from sleuth.graphs.runs import RunService, Services, prune
from sleuth.graphs.runs.history import list_checkpoints
from sleuth.studio.client import last_answer

REPEATS, RECENT = 20, 200
Row = dict[str, Any]


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return the median of a few times in milliseconds."""
    taken = []
    for _ in range(REPEATS):
        with clock() as each:
            await work()
        taken.append(1000 * each.wall)
    return median(taken)


async def make(store: Store, _place: RunStore, threads: int) -> Row:
    """Create runs until the store has this many."""
    runs, taken = RunService(store, Services(model=Instant(), retriever=Shelf())), []
    for number in range(len(await store.threads.list_newest()), threads):
        with clock() as each:
            await last_answer(runs.run(await runs.start(f"Who kept the light of number {number}?", "plain-rag")))
        taken.append(1000 * each.wall)
    return {"run_ms": median(taken[-RECENT:]), "make_mib": peak_mib()} if taken else {}


async def look(store: Store, _place: RunStore, _threads: int) -> Row:
    """Return the list's first page, the whole list, one run's hops (there are none), and its history."""
    runs, newest = RunService(store), store.threads.list_newest
    (thread, *_) = await newest(limit=1)
    return {
        "list_50_ms": await timed(lambda: newest(limit=50)),
        "list_all_ms": await timed(newest),
        "hops_ms": await timed(lambda: store.threads.subruns_of(thread.id)),
        "history_ms": await timed(lambda: list_checkpoints(runs, thread.id)),
    }


def room(place: RunStore) -> float:
    """Return megabytes in use, as far as the engine reports it."""
    sizes = place.sizes()
    return sizes.get("used_mb", sizes["file_mb"])


async def walk(store: Store, place: RunStore, steps: int) -> Row:
    """Measure PAR-RAG with a plan of many steps (at most 40), with two to four nodes each."""
    before = room(place)
    runs = RunService(store, Services(model=ScriptedModel(replies(steps), context_window=100_000), retriever=Shelf()))
    thread = await runs.start("Who was the last of the line?", "par-rag")
    with clock() as taken:
        answer = await last_answer(runs.run(thread))
    assert len(answer.notes) == steps
    with clock() as looked:
        moments = await list_checkpoints(runs, thread)
    return {
        "long_run_s": taken.wall,
        "long_run_checkpoints": len(moments),
        "long_run_history_s": looked.wall,
        "long_run_mb": room(place) - before,
    }


async def keep_last(store: Store, place: RunStore, _threads: int) -> Row:
    return {f"keep_last_{name}": value for name, value in (await _pruned(store, place, None, 1)).items()}


async def older_half(store: Store, place: RunStore, _threads: int) -> Row:
    every = await store.threads.list_newest()
    middle = datetime.fromisoformat(every[len(every) // 2].updated_at)
    age = (datetime.now(UTC) - middle).total_seconds()
    return {f"older_half_{name}": value for name, value in (await _pruned(store, place, age, None)).items()}


async def _pruned(store: Store, place: RunStore, older_than: float | None, keep: int | None) -> Row:
    with clock() as taken:
        gone = await prune(RunService(store), older_than=older_than, keep_last=keep)
    counts = {"runs": gone.threads, "checkpoints": gone.checkpoints, "texts": gone.texts}
    return {"prune_s": taken.wall, "prune_mib": peak_mib()} | counts | place.sizes()


STAGES = {stage.__name__: stage for stage in (make, look, walk, keep_last, older_half)}


async def child(what: str, place: RunStore, number: int) -> Row:
    async with open_store(place.settings()) as store:
        return await STAGES[what](store, place, number)


def apart(what: str, place: RunStore, number: int) -> Row:
    command = [
        sys.executable,
        "-m",
        "benchmarks.growth.runs",
        "--child",
        what,
        str(number),
        place.url or "",
        "--out",
        str(place.home),
    ]
    measured: Row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return measured


def on_copy(what: str, place: RunStore, number: int) -> Row:
    """Run `apart` on a copy; also return the copy's size after compaction."""
    with place.copied() as copy:
        row = apart(what, copy, number)
        copy.pack()
        return row | {f"{what}_vacuumed_mb": copy.sizes()["file_mb"]}


def measure(place: RunStore, threads: int, steps: int) -> Row:
    row: Row = {"threads": threads} | apart("make", place, threads) | place.sizes() | apart("look", place, threads)
    row |= on_copy("walk", place, steps) | on_copy("keep_last", place, threads)
    return row | on_copy("older_half", place, threads)


@contextmanager
def opened(out: Path, database: str) -> Iterator[RunStore]:
    if database == "sqlite":
        yield OnSqlite(out / "home")
        return
    with postgres() as server:
        yield OnPostgres(out / "home-postgres", server.url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1_000, 2_000, 10_000])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        what, number, url = given.child
        place = OnPostgres(given.out, url) if url else OnSqlite(given.out)
        print(json.dumps(asyncio.run(child(what, place, int(number)))))
        return
    file = given.out / ("many_threads.json" if given.database == "sqlite" else "many_threads-postgres.json")
    rows: list[Row] = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
    with opened(given.out, given.database) as place:
        for threads in sorted(set(given.threads) - {row["threads"] for row in rows}):
            print(f"{threads} runs", file=sys.stderr)
            rows.append(measure(place, threads, given.steps))
            fits = exponents(rows, "threads")
            file.write_text(json.dumps({"rows": rows, "fits": fits}, indent=1) + "\n", encoding="utf-8")
    print(table(rows, "threads"))


if __name__ == "__main__":
    main()
