"""Bytes of the checkpoints of a run, for PAR-RAG plans of 2 to 40 steps: they must grow linearly.

    python -m benchmarks.checkpoint_bytes [--steps 2 5 10 20 40] [--again 1]
    python -m benchmarks.checkpoint_bytes --steps 40 --turns 60 --rounds 12 --every 1000

The model's replies are made up, of the sizes that real ones have; store, graph and archive are the real ones. Each
review asks `--again` times for a further round, each a search, a draft, another search and a review. Prints the bytes
of each plan by table, and the median bytes of a checkpoint, with what was written for it, in the run's first and last
quarter; and the largest, since LangGraph writes a field as a whole after `--every` changes. `--turns` measures a chat
of so many turns, too, `--rounds` a RetroRAG run of so many rounds of six steps.

Exits with 1 where a step of the longest plan costs more than 1.25 times one of 5 steps, or a checkpoint late in the
longest run more than 1.25 times one early on.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any

from sleuth.agents.model import Request
from sleuth.graphs.chat.messages import Messages
from sleuth.graphs.core.context import Services
from sleuth.graphs.core.state import Keyed, Lines
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.search import Query
from sleuth.tools.settings import Settings
from sleuth.tools.types import Hit, Passage
from tests.support.scripted_model import Replying, ScriptedModel

PASSAGE = 700
QUOTE = 90
MOST_GROWTH = 1.25
QUESTION = "Who was the last of the line?"

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


def replies(steps: int, again: int) -> Iterator[dict[str, Any]]:
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


async def measure(steps: int, again: int, home: Path) -> dict[str, float]:
    """Return the bytes of one run, by table, and of its checkpoints, early and late."""
    model = ScriptedModel(replies(steps, again), context_window=100_000)
    request = RunRequest(question=QUESTION, method="par-rag", values={"max_requeries": again})
    return await measure_run(model, [request], home, steps)


async def measure_chat(turns: int, home: Path) -> dict[str, float]:
    """Return the same of a chat."""
    model = ScriptedModel(
        (reply for at in range(turns) for reply in ("question", {"known": True, "answer": words(f"{at}", 300)})),
        context_window=100_000,
    )
    about: dict[str, Any] = {"method": "chat", "values": {"method": "closed-book"}, "thread": "chat"}
    texts = (words(f"In which year did the town number {at} of Varn", 80) for at in range(turns))
    return await measure_run(model, [RunRequest(question=text, **about) for text in texts], home, turns)


def retro_reply(request: Request) -> dict[str, Any] | float:
    """Return a reply of RetroRAG: the evidence changes from round to round, and no two answers agree."""
    asked = sha256(request.text().encode()).hexdigest()
    if request.role == "evaluator":
        return 0.1 if request.prompt.endswith("consistency") else 0.6 + int(asked[:4], 16) / 200_000
    quotes = [{"source": 1, "quote": source["text"][:QUOTE]} for source in request.input.get("sources", ())[:1]]
    facts = [{"question": words(f"{at} {asked}", 70), "claim": words(f"Fact {at} {asked}", 90)} for at in range(3)]
    attempt = {"reason": words(f"since {asked}", 300), "answer": words(asked, 30), "citations": []}
    by_prompt: dict[str, dict[str, Any]] = {
        "detective/entities": {"entities": ["Varn", "the line"]},
        "detective/infer": {"inferences": [fact | {"citations": quotes} for fact in facts]},
        "detective/requery": {"query": words(asked, 90)},
    }
    return by_prompt.get(request.prompt, attempt)


async def measure_retro(rounds: int, home: Path) -> dict[str, float]:
    """Return the same of a RetroRAG run, whose rounds have six steps each."""
    request = RunRequest(question=QUESTION, method="retro-rag", values={"max_iterations": rounds})
    return await measure_run(Replying(retro_reply, context_window=100_000), [request], home, 6 * rounds)


async def measure_run(model: Replying, requests: list[RunRequest], home: Path, steps: int) -> dict[str, float]:
    """Return bytes and processor seconds of runs one after the other."""
    async with open_store(Settings(home=home)) as store:
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        began = process_time()
        for request in requests:
            await last_answer(runs.run(await runs.start(request)))
        seconds = process_time() - began
    return sizes_in(home, steps) | {"seconds": seconds}


def sizes_in(home: Path, steps: int) -> dict[str, float]:
    """Return the bytes of the stored run of so many steps, by table, and of its checkpoints, early and late."""
    with sqlite3.connect(home / "runs.sqlite") as connection:
        found = {name: float(connection.execute(query).fetchone()[0]) for name, query in SIZES.items()}
        sizes = [row[0] for row in connection.execute(ONE_BY_ONE)]
    quarter = len(sizes) // 4
    found |= {"a step": (found["checkpoints"] + found["writes"]) / steps, "number": len(sizes)}
    return found | {"early": median(sizes[:quarter]), "late": median(sizes[-quarter:]), "largest": max(sizes)}


async def main(steps: list[int], again: int, turns: int, rounds: int) -> int:
    measured = {}
    for number in steps:
        with tempfile.TemporaryDirectory() as home:
            measured[number] = found = await measure(number, again, Path(home))
        if len(measured) == 1:
            print(f"{'steps':>6}" + "".join(f"{name:>14}" for name in found))
        print(f"{number:>6}" + "".join(f"{size:>14,.1f}" for size in found.values()))
    for name, number, measured_run in (("chat", turns, measure_chat), ("retro", rounds, measure_retro)):
        if number:
            with tempfile.TemporaryDirectory() as home:
                sizes = await measured_run(number, Path(home))
            print(f"{name:>6}" + "".join(f"{size:>14,.1f}" for size in sizes.values()))
    longest = measured[steps[-1]]
    growth = longest["a step"] / measured.get(5, measured[steps[0]])["a step"]
    later = longest["late"] / longest["early"]
    print(f"bytes a step, plan of {steps[-1]} against plan of 5: {growth:.3f}; late against early: {later:.3f}")
    return 0 if max(growth, later) <= MOST_GROWTH else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[2, 5, 10, 20, 40])
    parser.add_argument("--again", type=int, default=1)
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--every", type=int, default=100)
    given = parser.parse_args()
    for channel in (Keyed, Lines, Messages):
        channel.snapshot_frequency = given.every
    sys.exit(asyncio.run(main(given.steps, given.again, given.turns, given.rounds)))
