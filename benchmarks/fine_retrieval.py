"""Hit rate of PAR-RAG's fine retrieval by search mode, without a model that plans or drafts.

    python -m benchmarks.fine_retrieval MUSIQUE_TRAIN --collection OUT
    sleuth ingest OUT/corpus.jsonl && sleuth triples import TRIPLES --model NAME     # or: sleuth triples read
    python -m benchmarks.fine_retrieval MUSIQUE_TRAIN

Each hop of MuSiQue's questions is a step. Its draft is the question with the gold answer; a hit is a gold passage among
the passages found. The names in the drafts come from the configured model, or with `--names rule` from capital letters.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from langgraph.func import entrypoint

from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.graphs.methods.par_rag.graph import extract_names
from sleuth.studio.client.sleuth import open_client
from sleuth.studio.evaluation.run_folder import write_lines
from sleuth.studio.evaluation.scoring import interval
from sleuth.tools.collection import Collection
from sleuth.tools.search import Mode, Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.archive import MemoryArchive
from training.questions import TrainingSet, read
from training.simulation.wording import fill_references

MODES: tuple[Mode, ...] = ("dense", "hybrid", "graph", "knowledge-graph")
SIZES = (1, 4, 10)


def hops(known: TrainingSet) -> list[tuple[str, str]]:
    """Return the draft and the id of the gold passage of each hop."""
    found = []
    for row in known.questions:
        answers = {at: step["answer"] for at, step in enumerate(row["decomposition"], start=1)}
        for step in row["decomposition"]:
            question = fill_references(step["question"], answers)
            found.append((f"{question} {step['answer']}", step["gold_id"]))
    return found


async def name_all(drafts: Sequence[str], settings: Settings) -> tuple[list[tuple[str, ...]], dict[str, Any]]:
    """Return the names that the configured model extracts from each draft, and the cost per draft."""
    began, turn = time.perf_counter(), asyncio.Semaphore(settings.concurrency)
    async with open_client(settings) as model:

        @entrypoint()  # a role is called within a graph
        async def extract(draft: str) -> tuple[tuple[str, ...], int]:
            caller = ModelCaller(model, MemoryArchive(), seed=draft)
            async with turn:
                names = await extract_names(draft, caller)
            calls = caller.calls.values()
            return names, sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls)

        found: list[Any] = await asyncio.gather(*(extract.ainvoke(draft) for draft in drafts))
    tokens, seconds = sum(tokens for _, tokens in found), time.perf_counter() - began
    each = {"tokens": round(tokens / len(drafts), 1), "seconds": round(seconds / len(drafts), 2)}
    return [names for names, _ in found], each


async def measure(known: TrainingSet, settings: Settings, names: str, limit: int | None) -> dict[str, Any]:
    """Return the hit rates of each mode in percent with 95 % intervals, and milliseconds per search."""
    steps = hops(known)[:limit]
    drafts = [draft for draft, _ in steps]
    named, cost = await name_all(drafts, settings) if names == "model" else ([() for _ in steps], {})
    shown: dict[str, Any] = {"steps": len(steps), "names": cost}
    async with await Collection.open(settings) as collection:
        gold = [known.passages[id_] for _, id_ in steps]
        for mode in MODES:
            await collection.search(Query(text="warm up", mode=mode))
            began = time.perf_counter()
            found = []
            for draft, entities in zip(drafts, named, strict=True):
                given = entities if mode == "knowledge-graph" else ()
                hits = await collection.search(Query(text=draft, k=max(SIZES), mode=mode, hop=True, entities=given))
                found.append([(hit.passage.title, hit.passage.text) for hit in hits])
            seconds = time.perf_counter() - began
            shown[mode] = {"ms": round(1000 * seconds / len(steps), 1)}
            for size in SIZES:
                rates = [float(passage in each[:size]) for passage, each in zip(gold, found, strict=True)]
                rate = interval(rates, seed=0)
                shown[mode][f"hit@{size}"] = [
                    round(100 * (value or 0.0), 1) for value in (rate["mean"], rate["low"], rate["high"])
                ]
    return shown


def main(
    questions: Annotated[Path, typer.Argument(help="MuSiQue's training questions with their paragraphs.")],
    *,
    collection: Annotated[
        Path | None, typer.Option(help="Write corpus and questions for `sleuth eval` to this folder, and end.")
    ] = None,
    names: Annotated[Literal["model", "rule"], typer.Option(help="How the names in a draft are found.")] = "model",
    limit: Annotated[int | None, typer.Option(help="Steps; default: all.")] = None,
) -> None:
    """Measure, and print JSON."""
    known = read([questions])
    if collection is not None:
        collection.mkdir(parents=True, exist_ok=True)
        write_lines(collection / "corpus.jsonl", known.corpus())
        write_lines(collection / "questions.jsonl", known.questions)
        return
    typer.echo(json.dumps(asyncio.run(measure(known, Settings(), names, limit)), indent=1))


if __name__ == "__main__":
    typer.run(main)
