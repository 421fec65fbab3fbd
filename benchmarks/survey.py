"""Accuracy of a survey of generated contracts whose cells are known, with the model and embedder of the settings.

    python -m benchmarks.survey [--documents 300] [--home FOLDER]

Each contract states its end, fee and city, or leaves some of them out, among sentences with other dates and amounts.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.survey.cells import read_value
from sleuth.studio.client.sleuth import open_sleuth
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.settings import Settings

COLUMNS = [
    {"name": "end", "question": "On which date does the contract end?", "kind": "date"},
    {"name": "fee", "question": "What is the yearly fee in EUR?", "kind": "number"},
    {"name": "city", "question": "In which city is the supplier based?", "kind": "text"},
]
QUESTION = "What do the contracts cost in all, and when do they end?"
CITIES = ["Kassel", "Leeds", "Porto", "Gdansk", "Bergen", "Turin", "Graz", "Ghent"]
NAMES = ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Hazel", "Juniper", "Larch", "Maple", "Oak", "Pine"]


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


async def measure(documents: int, seed: int, home: Path) -> dict[str, Any]:
    """Ingest the contracts, run the survey, and return what came of it."""
    made = contracts(documents, seed)
    settings, corpus = Settings(home=home), home / "contracts.jsonl"
    lines = [json.dumps({key: each[key] for key in ("id", "title", "text")}) for each in made]
    corpus.write_text("\n".join(lines) + "\n")
    await ingest([corpus], settings=settings)
    began = time.monotonic()
    async with open_sleuth(settings) as opened:
        answer = await opened.ask(QUESTION, method="survey", values={"columns": COLUMNS})
    return {
        "documents": documents,
        "calls": answer.cost["calls"],
        "seconds": round(time.monotonic() - began, 1),
        "cells": scores(answer, {each["title"]: each for each in made}),
        "figures": answer.table and answer.table["figures"],
    }


def main() -> None:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", type=Path, help="an empty folder; default: a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(measure(options.documents, options.seed, options.home or Path(folder)))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
