"""Results of all runs: one line each, appended as runs end, and read again after an interruption.

The stored runs are the source of truth: a lost line is created again from its run.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired

from typing_extensions import TypedDict

from sleuth.graphs.core import Cost, upgrade_cost
from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.scoring import metrics
from sleuth.studio.evaluation.scoring.statistics import SystemScores
from sleuth.tools.errors import StoreError

RESULTS = "results.jsonl"


class Result(TypedDict):
    """One run's outcome; `cited` has the ids of each cited passage and its document, `shown` are gold ids.

    `seconds` is the run's wall-clock time; missing for simulated runs and in older results.

    `quoted`: a citation contains the answer (missing in older results). `judged`: a judge model's opinion.

    A failed run has the status "failed" and its error in `problem`; it counts as a wrong answer until the same command
    has retried it.
    """

    thread: str
    system: str
    question: str
    status: str
    text: str
    cited: list[list[str]]
    quoted: NotRequired[float | None]
    shown: list[str]
    cost: Cost
    seconds: NotRequired[float | None]
    warnings: int
    problem: str
    simulated: bool
    judged: bool | None
    scores: dict[str, float | None]


class Results:
    """The lines of one evaluation's folder."""

    def __init__(self, path: Path, kept: dict[str, Result]) -> None:
        """Use `open_results`."""
        self._path = path
        self.by_thread = kept

    async def add(self, result: Result) -> None:
        """Append a line; a failed run has none, so that it is tried again."""
        self.by_thread[result["thread"]] = result
        if result["status"] != "failed":
            await asyncio.to_thread(_append, self._path, json.dumps(result, ensure_ascii=False) + "\n")


async def open_results(folder: Path) -> Results:
    """Return the lines so far; one that was cut off by a kill is dropped."""
    return await asyncio.to_thread(_open, folder / RESULTS)


def _open(path: Path, *, mend: bool = True) -> Results:
    kept: dict[str, Result] = {}
    whole = 0
    if path.exists():
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].splitlines():
            result = _result(json.loads(line))
            kept[result["thread"]] = result
        if mend:
            os.truncate(path, whole)
    return Results(path, kept)


def _result(line: dict[str, Any]) -> Result:
    """Return a line as a result; in those of older releases `seconds` were the model's."""
    scores = line["scores"]
    if "model_seconds" not in scores and "seconds" in scores:
        scores = {**scores, "model_seconds": scores["seconds"], "seconds": None}
    return Result(**{**line, "cost": upgrade_cost(line["cost"]), "scores": scores})  # type: ignore[typeddict-item]  # as it was stored


def _append(path: Path, line: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(line)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error}. Free some space, then rerun the same command to resume."
        ) from error


def read_scores(folder: Path) -> dict[str, SystemScores]:
    """Return the scores of an evaluation's runs by system and question; empty where it made none."""
    kept = _open(folder / RESULTS, mend=False).by_thread.values()
    names = dict.fromkeys(result["system"] for result in kept)
    return {name: {each["question"]: each["scores"] for each in kept if each["system"] == name} for name in names}


def scores(result: Result, question: GoldQuestion) -> dict[str, float | None]:
    """Return every metric of one run."""
    answered = result["status"] == "answered"
    return {
        **metrics.answer_scores(result["status"], result["text"], question.answers, result["judged"]),
        **metrics.citation_scores(result["cited"], question.gold, answered=answered),
        "quoted": result.get("quoted") if answered else None,
        **metrics.shown_recall(result["shown"], question.gold),
        **(metrics.cost_scores(_numbers(result["cost"])) if result["status"] != "failed" else {}),
        "seconds": result.get("seconds"),
    }


def _numbers(cost: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in cost.items() if name != "nodes"}
