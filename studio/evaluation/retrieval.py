"""Search alone: how much of the gold is among the first passages found, and what a search costs."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.run_folder import write_lines
from sleuth.studio.evaluation.scoring import scores_by, summarise
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.search import Mode, Query
from sleuth.tools.settings import Settings
from sleuth.tools.types import Hit

DEPTHS = (2, 5, 20)
METRICS = (*(f"recall@{depth}" for depth in DEPTHS), "all@5")
COMPARED = ("recall@5", "all@5")

FOUND = "retrieval.jsonl"

PARTS: Mapping[str, Mapping[str, str]] = {"training": {"ranker": "formula"}, "vectors": {"embedder": "none"}}
"""The parts of graph search that can be left out, by the settings that do it."""


SearchSystems = Mapping[str, tuple[Mode, Collection]]
"""Ways to search by name: a mode over a collection, which may be opened with a part switched off."""


@asynccontextmanager
async def open_search_systems(
    settings: Settings, collection: Collection, modes: Sequence[Mode], *, ablated: bool
) -> AsyncIterator[SearchSystems]:
    """Open the modes; with `ablated` also graph search with each of its parts switched off that is on."""
    systems: dict[str, tuple[Mode, Collection]] = {mode: (mode, collection) for mode in modes}
    async with AsyncExitStack() as opened:
        for part, values in PARTS.items() if ablated else ():
            less = settings.model_copy(update=values)
            if less != settings:
                embedder = None if "embedder" in values else collection.embedder
                without = await opened.enter_async_context(await Collection.open(less, embedder=embedder))
                systems[f"graph without {part}"] = ("graph", without)
        yield systems


async def measure_search(
    systems: SearchSystems,
    questions: Sequence[GoldQuestion],
    out: Path,
    *,
    seed: int,
    on_progress: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Search for every question that has gold passages, one after the other, and write what is found to the folder.

    Raises:
        UsageError: no question has gold passages.
    """
    judged = [question for question in questions if question.gold]
    if not judged:
        raise UsageError("Search cannot be judged: none of the questions names its gold_ids.")
    speed: dict[str, dict[str, float]] = {}
    found: list[dict[str, Any]] = []
    for name, (mode, collection) in systems.items():
        first, _ = await _timed_search(collection, mode, "Which index is this?")  # loads what it needs
        taken = []
        for question in judged:
            seconds, hits = await _timed_search(collection, mode, question.question)
            taken.append(1000 * seconds)
            passages, scores = [hit.passage.id for hit in hits], recall(hits, question.gold)
            found.append({"mode": name, "question": question.key, "passages": passages, "scores": scores})
            on_progress("searches", len(found), len(judged) * len(systems))
        p50, p95 = map(float, np.quantile(taken, [0.5, 0.95]))
        speed[name] = {"first_seconds": first, "p50_ms": p50, "p95_ms": p95}
    await asyncio.to_thread(write_lines, out / FOUND, found)
    summary = summarise(scores_by("mode", found), judged, METRICS, compared=COMPARED, seed=seed)
    return {"modes": list(systems), "summary": summary, "speed": speed}


async def _timed_search(collection: Collection, mode: Mode, text: str) -> tuple[float, list[Hit]]:
    began = time.perf_counter()
    hits = await collection.search(Query(text=text, k=max(DEPTHS), mode=mode))
    return time.perf_counter() - began, hits


def recall(hits: Sequence[Hit], gold: Sequence[str]) -> dict[str, float]:
    """Return the share of gold ids among the first passages, by depth, and whether all are among the first five.

    An id is found with the passage of this id, or with any passage of the document of this id.
    """
    found = {}
    for depth in DEPTHS:
        covered = {id for hit in hits[:depth] for id in (hit.passage.id, hit.passage.document_id)}
        found[depth] = len(covered & set(gold))
    shares = {f"recall@{depth}": count / len(gold) for depth, count in found.items()}
    return shares | {"all@5": float(found[5] == len(gold))}
