"""Search alone: how much of the gold is among the first passages found, and what a search costs."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.run_folder import write_lines
from sleuth.studio.evaluation.scoring import scores_by, summarize
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.search import Mode, Query
from sleuth.tools.types import Hit

DEPTHS = (2, 5, 20)
METRICS = (*(f"recall@{depth}" for depth in DEPTHS), "all@5")
COMPARED = ("recall@5", "all@5")

FOUND = "retrieval.jsonl"


async def measure_search(
    modes: Sequence[Mode],
    collection: Collection,
    questions: Sequence[GoldQuestion],
    out: Path,
    *,
    seed: int,
    on_progress: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Search for every question that has gold passages, one after the other, and write the hits to the folder.

    Raises:
        UsageError: no question has gold passages.
    """
    judged = [question for question in questions if question.gold]
    if not judged:
        raise UsageError("Search cannot be judged: none of the questions names its gold_ids.")
    speed: dict[str, dict[str, float]] = {}
    rows: list[dict[str, Any]] = []
    for mode in modes:
        first, _ = await _timed_search(collection, mode, "Which index is this?")  # loads what it needs
        milliseconds = []
        for question in judged:
            seconds, hits = await _timed_search(collection, mode, question.question)
            milliseconds.append(1000 * seconds)
            passages, scores = [hit.passage.id for hit in hits], recall(hits, question.gold)
            rows.append({"mode": mode, "question": question.key, "passages": passages, "scores": scores})
            on_progress("searches", len(rows), len(judged) * len(modes))
        p50, p95 = map(float, np.quantile(milliseconds, [0.5, 0.95]))
        speed[mode] = {"first_seconds": first, "p50_ms": p50, "p95_ms": p95}
    await asyncio.to_thread(write_lines, out / FOUND, rows)
    summary = summarize(scores_by("mode", rows), judged, METRICS, compared=COMPARED, seed=seed)
    return {"modes": list(modes), "summary": summary, "speed": speed}


async def _timed_search(collection: Collection, mode: Mode, text: str) -> tuple[float, list[Hit]]:
    began = time.perf_counter()
    hits = await collection.search(Query(text=text, k=max(DEPTHS), mode=mode))
    return time.perf_counter() - began, hits


def recall(hits: Sequence[Hit], gold: Sequence[str]) -> dict[str, float]:
    """Return the share of gold ids among the first passages, by depth, and whether all are among the first five.

    An id is found with the passage of this id, or with any passage of the document of this id.
    """
    ids = [{hit.passage.id, hit.passage.document_id} for hit in hits]
    counts = {depth: len(set(gold) & set[str]().union(*ids[:depth])) for depth in DEPTHS}
    shares = {f"recall@{depth}": count / len(gold) for depth, count in counts.items()}
    return shares | {"all@5": float(counts[5] == len(gold))}
