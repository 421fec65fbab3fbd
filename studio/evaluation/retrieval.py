"""Search alone: how much of the gold is among the first passages found, and what a search costs."""

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from typing_extensions import TypedDict

from sleuth.studio.evaluation.questions import GoldQuestion
from sleuth.studio.evaluation.summary import Own, Scores, Summary, summarise
from sleuth.tools.documents import Hit
from sleuth.tools.library import Library
from sleuth.tools.retriever import Mode, Query

DEPTHS = (2, 5, 20)
METRICS = (*(f"recall@{depth}" for depth in DEPTHS), "all@5")
COMPARED = ("recall@5", "all@5")

FOUND = "retrieval.jsonl"


class Speed(TypedDict):
    """What the searches of one mode cost; memory is this process's, with everything that was loaded before."""

    first_seconds: float
    p50_ms: float
    p95_ms: float
    memory_mib: float


class Found(TypedDict):
    """What one mode found for one question, best first."""

    mode: str
    question: str
    passages: list[str]
    scores: dict[str, float]


class RetrievalResult(TypedDict):
    """Everything that was measured about search."""

    modes: list[str]
    summary: Summary
    speed: dict[str, Speed]
    found: list[Found]


Tick = Callable[[], None]


async def measure_search(
    library: Library, questions: Sequence[GoldQuestion], modes: Sequence[Mode], *, seed: int, tick: Tick
) -> RetrievalResult:
    """Searches for every question that has gold passages, one after the other; calls `tick` after each."""
    judged = [question for question in questions if question.gold]
    speed: dict[str, Speed] = {}
    found: list[Found] = []
    for mode in modes:
        speed[mode], results = await _measure(library, judged, mode, tick)
        found += results
    scores: Scores = {
        mode: {each["question"]: each["scores"] for each in found if each["mode"] == mode} for mode in modes
    }
    summary = summarise(scores, judged, METRICS, compared=COMPARED, seed=seed)
    return RetrievalResult(modes=list(modes), summary=summary, speed=speed, found=found)


async def _measure(
    library: Library, questions: Sequence[GoldQuestion], mode: Mode, tick: Tick
) -> tuple[Speed, list[Found]]:
    began = time.perf_counter()
    await library.search(Query(text="Which index is this?", k=max(DEPTHS), mode=mode))  # loads what it needs
    first = time.perf_counter() - began
    found, seconds = [], []
    for question in questions:
        began = time.perf_counter()
        hits = await library.search(Query(text=question.question, k=max(DEPTHS), mode=mode))
        seconds.append(time.perf_counter() - began)
        passages = [hit.passage.id for hit in hits]
        found.append(Found(mode=mode, question=question.key, passages=passages, scores=recall(hits, question.gold)))
        tick()
    p50, p95 = (1000 * float(value) for value in np.quantile(seconds, [0.5, 0.95]))
    return Speed(first_seconds=first, p50_ms=p50, p95_ms=p95, memory_mib=memory_mib()), found


def read_found(folder: Path) -> dict[str, Own]:
    """The scores of an evaluation's searches by mode and question; empty where it made none."""
    path = folder / FOUND
    lines: list[Found] = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    modes = dict.fromkeys(line["mode"] for line in lines)
    return {mode: {line["question"]: line["scores"] for line in lines if line["mode"] == mode} for mode in modes}


def recall(hits: Sequence[Hit], gold: Sequence[str]) -> dict[str, float]:
    """The share of gold ids among the first passages, by depth, and whether all are among the first five.

    An id is found with the passage of this id, or with any passage of the document of this id.
    """
    found = {depth: _among(hits[:depth], gold) for depth in DEPTHS}
    shares = {f"recall@{depth}": count / len(gold) for depth, count in found.items()}
    return shares | {"all@5": float(found[5] == len(gold))}


def _among(hits: Sequence[Hit], gold: Sequence[str]) -> int:
    covered = {id for hit in hits for id in (hit.passage.id, hit.passage.document_id)}
    return len(covered & set(gold))


def memory_mib() -> float:
    """Resident memory of this process; at its highest, where the system does not tell it as it is now."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
