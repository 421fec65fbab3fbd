"""Search under harder conditions: without titles, in lower case, with every corpus in one collection.

    python -m benchmarks.studies.search_conditions CORPUS QUESTIONS [CORPUS QUESTIONS ...] \
        [--modes keyword,graph] [--limit N]

Each pair is a corpus ({"id", "title", "text"} per line; "abstract", a list, replaces "text") and its questions (fixed
format; SciFact's claims count as questions whose gold are the documents of their evidence). Measured: each corpus by
itself as it is, without titles, in lower case (questions too), and all corpora in one collection. Prints recall with
95 % bootstrap intervals as a table, seconds for indexing, milliseconds per query, and all of it as one JSON line.
Vectors are made only where SLEUTH_EMBEDDER names an embedder and a mode needs them.
"""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import options
from benchmarks.harness import rows as lines
from sleuth.graphs.ingestion import ingest
from sleuth.studio.evaluation.data import GoldQuestion, read_questions, sample
from sleuth.studio.evaluation.scoring import METRICS, SearchSystem, measure_search
from sleuth.tools.collection import Collection
from sleuth.tools.search import Mode
from sleuth.tools.settings import Settings

Row = dict[str, Any]
CONDITIONS = ("as it is", "without titles", "lower case", "all together")


def passage(row: Row, condition: str) -> Row:
    text = row["text"] if "text" in row else " ".join(row["abstract"])
    title = "" if condition == "without titles" else row["title"]
    plain = {"id": str(row["id"]), "title": title, "text": text}
    return {**plain, "title": title.lower(), "text": text.lower()} if condition == "lower case" else plain


def asked(path: Path, folder: Path, name: str, limit: int | None) -> list[GoldQuestion]:
    """Return questions in the fixed format; claims become questions."""
    rows = [
        {"id": str(row["id"]), "question": row["claim"], "gold_ids": [str(each["doc_id"]) for each in row["evidence"]]}
        if "claim" in row
        else row
        for row in lines(path)
    ]
    written = folder / f"{name}.jsonl"
    written.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (file,) = read_questions([written])
    return sample([question for question in file.questions if question.gold], limit, seed=0)


async def measured(
    corpora: list[Path], questions: list[GoldQuestion], condition: str, modes: list[Mode], folder: Path
) -> Row:
    """Return a collection of its own, and every mode's searches in it."""
    source = folder / "corpus.jsonl"
    rows = [passage(row, condition) for corpus in corpora for row in lines(corpus)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given = (
        [replace(each, question=each.question.lower()) for each in questions]
        if condition == "lower case"
        else questions
    )
    settings = Settings(home=folder / "home", collection="conditions")
    began = time.perf_counter()
    report = await ingest([source], settings=settings)
    seconds = time.perf_counter() - began
    assert report.failed == 0, report.warnings
    async with await Collection.open(settings) as library:
        systems = [SearchSystem(name=mode, library=library, mode=mode) for mode in modes]
        result = await measure_search(systems, given, seed=0, tick=lambda: None)
    return {
        "passages": len(rows),
        "index seconds": round(seconds, 1),
        "speed": result["speed"],
        "summary": result["summary"],
    }


def shown(result: Row, condition: str, title: str) -> None:
    for name, group in (result["summary"]["by"].get("set") or {title: result["summary"]["all"]}).items():
        for mode, line in group["systems"].items():
            cells = [line[metric] for metric in METRICS]
            figures = [f"{100 * each['mean']:.1f} ({100 * each['low']:.1f}–{100 * each['high']:.1f})" for each in cells]
            speed = result["speed"][mode]
            times = f"{result['index seconds']} s, {speed['p50_ms']:.0f}/{speed['p95_ms']:.0f} ms"
            cost = f"{times}, {speed['memory_mib']:.0f} MiB"
            print(f"| {condition} | {name} | {mode} | {' | '.join(figures)} | {cost} |", flush=True)


async def main() -> None:
    parser = options(__doc__, "limit")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--modes", default="keyword,graph")
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    args = parser.parse_args()
    pairs, modes = list(zip(args.files[::2], args.files[1::2], strict=True)), args.modes.split(",")
    wanted, results = args.conditions.split(","), {}
    print(
        "| | questions | mode | recall@2 | recall@5 | recall@20 | all gold @5 | index, p50/p95, memory |\n"
        + "| --- " * 8
        + "|"
    )
    with TemporaryDirectory() as name:
        sets = {
            corpus.parent.name: (corpus, asked(questions, Path(name), corpus.parent.name, args.limit))
            for corpus, questions in pairs
        }
        trials = [
            (condition, title, [corpus], questions)
            for condition in CONDITIONS[:-1]
            for title, (corpus, questions) in sets.items()
        ]
        every = [question for _, questions in sets.values() for question in questions]
        trials.append((CONDITIONS[-1], "all", [corpus for corpus, _ in sets.values()], every))
        for at, (condition, title, corpora, questions) in enumerate(trials):
            if condition in wanted:
                folder = Path(name) / str(at)
                folder.mkdir()
                results[f"{condition}: {title}"] = await measured(corpora, questions, condition, modes, folder)
                shown(results[f"{condition}: {title}"], condition, title)
    print(json.dumps(results))


if __name__ == "__main__":
    asyncio.run(main())
