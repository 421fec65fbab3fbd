"""Survey of generated contracts whose cells are known: accuracy, counts, kills, and size.

    python -m benchmarks.survey [--documents 300] [--real] [--kills 20] [--home FOLDER]

Each contract states its end, fee and city, or leaves some of them out, among sentences with other dates and amounts.
Without --real, a reader without mistakes answers without delay: times and bytes are sleuth's own. With --kills, the
survey runs in a process that is killed and started again so often; then the calls are counted that were sent twice.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Services
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.service import RunService
from sleuth.graphs.survey.cells import read_value
from sleuth.studio.client.sleuth import last_answer, open_sleuth
from sleuth.tools.collection import Collection
from sleuth.tools.settings import Settings
from tests.support.scripted_model import reply

COLUMNS = [
    {"name": "end", "question": "On which date does the contract end?", "kind": "date"},
    {"name": "fee", "question": "What is the yearly fee in EUR?", "kind": "number"},
    {"name": "city", "question": "In which city is the supplier based?", "kind": "text"},
]
QUESTION = "What do the contracts cost in all, and when do they end?"
CITIES = ["Kassel", "Leeds", "Porto", "Gdansk", "Bergen", "Turin", "Graz", "Ghent"]
NAMES = ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Hazel", "Juniper", "Larch", "Maple", "Oak", "Pine"]
THREAD = "survey"


def contracts(number: int, seed: int) -> list[dict[str, str]]:
    """Return contracts with their text and their cells; a cell is empty if the text does not state it."""
    chance = random.Random(seed)
    made = []
    for at in range(number):
        name = f"{chance.choice(NAMES)} {chance.choice(NAMES)} {at}"
        end = f"{chance.randint(2026, 2029)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        fee, city = f"{chance.randint(2, 90) * 100:,}", chance.choice(CITIES)
        stated = {key for key in ("end", "fee", "city") if chance.random() < 0.85}
        sentences = [
            f"This contract between {name} Ltd and the town library was signed on 2024-0{chance.randint(1, 9)}-15.",
            f"The supplier, {name} Ltd, is based in {city}." if "city" in stated else f"The supplier is {name} Ltd.",
            f"A deposit of EUR {chance.randint(1, 9) * 50} is returned when all keys are back.",
            f"The yearly fee is EUR {fee}." if "fee" in stated else "The fee is agreed for each delivery.",
            f"The contract ends on {end}." if "end" in stated else "The contract has no fixed term.",
        ]
        chance.shuffle(sentences)
        cells = {key: value if key in stated else "" for key, value in (("end", end), ("fee", fee), ("city", city))}
        made.append({"id": f"contract-{at:05}", "title": f"{name} contract", "text": " ".join(sentences), **cells})
    return made


@dataclass
class Reader:
    """A model that reads a contract without mistakes; `log` gets the id of every call that it answers."""

    gold: dict[str, dict[str, str]]
    log: Path | None = None
    context_window: int = 8192

    async def call(self, request: Request) -> Reply:
        """Answer a column's question, or word the sentence from the first figure."""
        if self.log:
            with self.log.open("a") as file:
                file.write(request.call_id + "\n")
        if request.prompt != "reader/read":
            return reply(json.dumps({"sentence": request.input["figures"][0]}))
        (column,) = (each["name"] for each in COLUMNS if each["question"] == request.input["question"])
        source = request.input["sources"][0]
        value = self.gold[source["title"]][column]
        quote = next((f"{each}." for each in source["text"].split(". ") if value and value in each), "").replace(
            "..", "."
        )
        citations = [{"source": 1, "quote": quote}] if value else []
        return reply(json.dumps({"answerable": bool(value), "answer": value, "citations": citations}))

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return one token per word."""
        return sum(len(message["content"].split()) for message in messages)


async def run(settings: Settings, model: Model) -> Answer:
    """Start the survey, or resume it, and return its answer."""
    async with await Collection.open(settings) as collection, open_store(settings) as store:
        runs = RunService(store, Services(model=model, retriever=collection))
        if not await store.threads.exists(THREAD):
            await runs.start(QUESTION, "survey", values={"columns": COLUMNS}, thread=THREAD)
        return await last_answer(runs.run(THREAD))


async def run_real(settings: Settings) -> Answer:
    """Run the survey with the model of the settings."""
    async with open_sleuth(settings) as opened:
        return await opened.ask(QUESTION, method="survey", values={"columns": COLUMNS}, thread=THREAD)


def scores(answer: Answer, gold: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Return the accuracy of the cells by column, and of those that the document does not state."""
    assert answer.table
    result: dict[str, Any] = {}
    for column in COLUMNS:
        name, kind = column["name"], column["kind"]
        right = wrong = missed = refused = invented = 0
        for row in answer.table["rows"]:
            cell, wanted = row["cells"][name], gold[row["title"]][name]
            stated = cell["value"] if not cell.get("doubt") else ""
            same = stated and read_value(kind, stated) == read_value(kind, wanted)  # type: ignore[arg-type]
            right, wrong = right + bool(wanted and same), wrong + bool(wanted and stated and not same)
            missed, refused = missed + bool(wanted and not stated), refused + (not wanted and not stated)
            invented += bool(not wanted and stated)
        result[name] = {
            "right": right,
            "wrong": wrong,
            "missed": missed,
            "rightly not stated": refused,
            "invented": invented,
        }
    return result


def kill(home: Path, documents: int, seed: int, kills: int) -> None:
    """Run the survey in a process that is killed after random times, then to its end."""
    chance = random.Random(seed)
    command = [sys.executable, "-m", "benchmarks.survey", "--child", "--home", str(home), "--documents", str(documents)]
    done = 0
    while done < kills:
        before = _lines(home)
        with subprocess.Popen([*command, "--seed", str(seed)]) as child:
            while child.poll() is None and _lines(home) == before:
                time.sleep(0.02)
            time.sleep(chance.uniform(0, 0.4))
            if child.poll() is not None:
                return
            os.kill(child.pid, signal.SIGKILL)
        done += 1


def _lines(home: Path) -> int:
    log = home / "calls.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


async def measure(options: argparse.Namespace, home: Path) -> dict[str, Any]:
    """Ingest the contracts, run the survey, and return what came of it."""
    made = contracts(options.documents, options.seed)
    gold = {each["title"]: each for each in made}
    settings = Settings(home=home) if options.real else Settings(home=home, embedder="none")
    if options.child:
        await run(settings, Reader(gold, home / "calls.log"))
        return {}
    corpus = home / "contracts.jsonl"
    lines = [json.dumps({key: each[key] for key in ("id", "title", "text")}) for each in made]
    corpus.write_text("\n".join(lines) + "\n")
    await ingest([corpus], settings=settings)
    if options.kills:
        await asyncio.to_thread(kill, home, options.documents, options.seed, options.kills)
    began = time.monotonic()
    answer = await (run_real(settings) if options.real else run(settings, Reader(gold, home / "calls.log")))
    took = time.monotonic() - began
    runs = home / "runs.sqlite"
    report = {
        "documents": options.documents,
        "calls": answer.cost["calls"],
        "seconds": round(took, 1),
        "peak memory, MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "bytes of the run per document": runs.stat().st_size // options.documents if runs.exists() else None,
        "cells": scores(answer, gold),
        "figures": answer.table and answer.table["figures"],
    }
    if not options.real:
        sent = (home / "calls.log").read_text().splitlines()
        report["calls sent twice"] = len(sent) - len(set(sent))
    return report


def main() -> None:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--real", action="store_true", help="the model and embedder of the settings")
    parser.add_argument("--home", type=Path, help="an empty folder; default: a temporary one")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = options.home or Path(folder)
        report = asyncio.run(measure(options, home))
    if report:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
