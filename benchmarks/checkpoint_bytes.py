"""Bytes of the checkpoints of a run, for PAR-RAG plans of 2 to 40 steps: they must grow linearly.

    python -m benchmarks.checkpoint_bytes [--steps 2 5 10 20 40] [--again 1]

The model's replies are made up, of the sizes that real ones have; store, graph and archive are the real ones. Plans of
more than 40 steps are refused, so longer runs come of reviews that ask again: `--again` runs the longest plan with so
many further rounds for each step (10 are the most that can be set), each a search, a draft, another search and a
review. Of these it prints the bytes of a checkpoint, with what was written for it, and the milliseconds to the next,
as medians of the run's first and last quarter; and the largest, since LangGraph writes a field as a whole after a
hundred changes.

Exits with 1 where a line does not fit the growth, a step of the longest plan costs more than 1.25 times one of 5 steps,
or a checkpoint late in a long run more than 1.25 times one early on.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import correlation, linear_regression, median
from typing import Any

from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import list_checkpoints
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.search import Query
from sleuth.tools.settings import Settings
from sleuth.tools.types import Hit, Passage
from tests.support.scripted_model import ScriptedModel

PASSAGE = 700
QUOTE = 90
MOST_GROWTH = 1.25
LEAST_FIT = 0.995

SIZES = {
    "checkpoints": "SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints",
    "writes": "SELECT sum(length(value)) FROM writes",
    "texts": "SELECT sum(length(body)) FROM sleuth_texts",
}
ONE_BY_ONE = (
    "SELECT length(checkpoint) + length(metadata) + (SELECT coalesce(sum(length(value)), 0) FROM writes "
    "WHERE writes.checkpoint_id = checkpoints.checkpoint_id) FROM checkpoints ORDER BY checkpoint_id"
)


def words(about: str, length: int) -> str:
    """Return text of a given length that compresses like prose, always the same for the same subject."""
    dice = Random(about)
    text = about
    while len(text) < length:
        text += " " + "".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9)))
    return text[:length]


class Shelf:
    """Finds passages of its own for every query."""

    async def search(self, query: Query) -> list[Hit]:
        return [self._hit(query.text, rank) for rank in range(1, query.k + 1)]

    def _hit(self, text: str, rank: int) -> Hit:
        id = sha256(f"{text}{rank}".encode()).hexdigest()[:16]
        body = words(f"{rank} {text}", PASSAGE)
        passage = Passage(id=id, document_id=f"{id}.md", title=words(id, 30), text=body, start=0, end=len(body))
        return Hit(passage=passage, score=1 / rank, rank=rank)


def replies(steps: int, again: int = 0) -> Iterator[dict[str, Any]]:
    """Return replies of a chain of steps; each review asks another question `again` times, then passes."""
    questions = [words(f"Question {number}", 70) for number in range(1, steps + 1)]
    plan = [
        {"thought": words("because", 60), "question": text, "needs": [at][:at]} for at, text in enumerate(questions)
    ]
    yield {"steps": plan}
    for at, question in enumerate(questions):
        asked = words(f"Refined {question}", 90)
        if at:
            yield {"question": asked}
        searched = asked if at else question
        for turn in range(again + 1):
            quotes = [{"source": n, "quote": words(f"{n} {searched}", QUOTE)} for n in (1, 2)]
            yield {"answer": words(f"answer {at} {turn}", 30), "citations": quotes}
            searched = words(f"Again {turn} {question}", 90)
            yield {"status": "UNCONFIDENT", "question": searched} if turn < again else {"status": "PASS"}
    yield {"known": True, "answer": words("final", 30)}


async def measure(steps: int, home: Path) -> dict[str, int]:
    """Return the bytes of one run, by table, and of its compacted file."""
    model = ScriptedModel(replies(steps), context_window=100_000)
    async with open_store(Settings(home=home)) as store:
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        answer = await last_answer(runs.run(await runs.start("Who was the last of the line?", "par-rag")))
    model.done()
    assert len(answer.notes) == steps
    assert len(answer.citations) == 3 * steps, "two of each draft, and one of its review"
    with sqlite3.connect(home / "runs.sqlite") as connection:
        sizes = {name: int(connection.execute(query).fetchone()[0]) for name, query in SIZES.items()}
        connection.execute("VACUUM")
        pages, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
    return {**sizes, "file": pages * size}


async def long_run(steps: int, again: int, home: Path) -> dict[str, float]:
    """Return a run of many rounds: what a checkpoint of it takes early and late."""
    model, rounds = ScriptedModel(replies(steps, again), context_window=100_000), steps * (again + 1)
    async with open_store(Settings(home=home)) as store:
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        thread = await runs.start("Who was the last of the line?", "par-rag", values={"max_requeries": again})
        answer = await last_answer(runs.run(thread))
        began = time.process_time()
        moments = (await list_checkpoints(runs, thread))[::-1]
        looked = time.process_time() - began
    model.done()
    assert len(answer.notes) == steps
    with sqlite3.connect(home / "runs.sqlite") as connection:
        sizes = [row[0] for row in connection.execute(ONE_BY_ONE)]
    at = [1000 * datetime.fromisoformat(moment.at).timestamp() for moment in moments]
    taken = {"bytes": sizes, "ms": [after - before for before, after in pairwise(at)]}
    found = {"rounds": rounds, "checkpoints": len(sizes), "megabytes": sum(sizes) / 1e6, "largest": max(sizes)}
    for name, values in taken.items():
        quarter = len(values) // 4
        found |= {f"early {name}": median(values[:quarter]), f"late {name}": median(values[-quarter:])}
    return {**found, "history s cpu": looked}


async def main(steps: list[int], again: list[int]) -> int:
    measured = {}
    print(f"{'steps':>6}" + "".join(f"{name:>14}" for name in (*SIZES, "file")) + f"{'run bytes/step':>16}")
    for number in steps:
        with tempfile.TemporaryDirectory() as home:
            measured[number] = found = await measure(number, Path(home))
        run = found["checkpoints"] + found["writes"]
        print(f"{number:>6}" + "".join(f"{size:>14,}" for size in found.values()) + f"{run / number:>16,.0f}")
    good = True
    for name in (*SIZES, "file"):
        sizes = [measured[number][name] for number in steps]
        slope, offset = linear_regression(steps, sizes)
        fit = correlation(steps, sizes) ** 2
        growth = (sizes[-1] - offset) / steps[-1] / slope
        good &= fit >= LEAST_FIT
        print(f"{name}: {slope:,.0f} bytes a step + {offset:,.0f}; r² {fit:.5f}, last plan at {growth:.3f} of the line")
    per_step = {number: sum(measured[number][name] for name in ("checkpoints", "writes")) / number for number in steps}
    ratio = per_step[steps[-1]] / per_step.get(5, per_step[steps[0]])
    print(f"bytes a step, plan of {steps[-1]} against plan of 5: {ratio:.3f}")
    good &= ratio <= MOST_GROWTH
    for turns in again:
        with tempfile.TemporaryDirectory() as home:
            taken = await long_run(steps[-1], turns, Path(home))
        print(", ".join(f"{name} {value:,.4g}" for name, value in taken.items()))
        ratios = {name: taken[f"late {name}"] / taken[f"early {name}"] for name in ("bytes", "ms")}
        print("late against early: " + ", ".join(f"{name} {value:.3f}" for name, value in ratios.items()))
        good &= ratios["bytes"] <= MOST_GROWTH
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[2, 5, 10, 20, 40])
    parser.add_argument("--again", type=int, nargs="*", default=[1])
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.steps, given.again)))
