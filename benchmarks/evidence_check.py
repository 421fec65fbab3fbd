"""The evidence checker on the answers of an evaluation: what it separates, and what its own answers would be worth.

    sleuth eval QUESTIONS --methods plain-rag --out OUT
    python -m benchmarks.evidence_check QUESTIONS --out OUT --checker CHECKER [--system plain-rag]

Reads the finished runs in OUT, without a model. Right answers are those with an F1 of at least 0.5. `accepted` shows
thresholds of `check_evidence`: the share of answers that stay, and their F1. `spans` compares the reader's answers with
those that the checker reads from the same passages, and with rules that choose between the two. Choose thresholds and
rules on other questions than those that are reported.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sleuth.graphs.evidence.check import as_evidence, assess, cited_passages, found_passages
from sleuth.graphs.persistence import open_store
from sleuth.graphs.runs import RunService
from sleuth.studio.evaluation.data import GoldQuestion, read_questions
from sleuth.studio.evaluation.results import Result, open_results
from sleuth.studio.evaluation.scoring import f1, interval
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.settings import Settings
from training.evidence_checker.measure import area, reliability

THRESHOLDS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
MARGINS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A run: its answer's F1, what the checker gives to it, and the checker's own answer from all passages."""

    answered: bool
    f1: float
    support: float
    answerable: float
    own_f1: float
    own_support: float
    reader_support: float


async def read_run(runs: RunService, result: Result, question: GoldQuestion, checker: EvidenceChecker) -> Row:
    """Return the row of a finished run."""
    thread = await runs.store.threads.get(result["thread"])
    values = (await runs.graph(thread).aget_state(runs.config(thread))).values
    found = await found_passages(values, runs.store.archive)
    reading = await asyncio.to_thread(checker.read, question.question, as_evidence(found))
    answered = result["status"] == "answered"
    cited = cited_passages(values["verdict"]["citations"], found)
    support = await assess(checker, question.question, result["text"] if answered else "", cited)
    return Row(
        answered=answered,
        f1=f1(result["text"], question.answers) if answered else 0.0,
        support=support["score"],
        answerable=support["answerable"],
        own_f1=f1(reading.answer, question.answers),
        own_support=reading.support_of(reading.answer),
        reader_support=reading.support_of(result["text"]) if answered else 0.0,
    )


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the tables of the rows."""
    answered = [row for row in rows if row.answered]
    right = [row for row in answered if row.f1 >= 0.5]
    wrong = [row for row in answered if row.f1 < 0.5]
    return {
        "runs": len(rows),
        "answered": len(answered),
        "auc": {
            name: area([getattr(row, name) for row in right], [getattr(row, name) for row in wrong], seed=0)
            for name in ("support", "answerable", "reader_support")
        },
        "calibration": reliability([(row.support, row.f1 >= 0.5) for row in answered]),
        "accepted": [_accepted(rows, least) for least in THRESHOLDS],
        "spans": {
            "reader": interval([row.f1 for row in rows], seed=0),
            "checker": interval([row.own_f1 for row in rows], seed=0),
            "better of both": interval([max(row.f1, row.own_f1) for row in rows], seed=0),
            **{
                f"checker if {margin} above": interval([_chosen(row, margin) for row in rows], seed=0)
                for margin in MARGINS
            },
        },
    }


def _accepted(rows: Sequence[Row], least: float) -> dict[str, float]:
    kept = [row.f1 for row in rows if row.answered and row.support >= least]
    return {
        "min_support": least,
        "share": round(len(kept) / len(rows), 3),
        "f1 of accepted": round(float(np.mean(kept)), 3) if kept else 0.0,
        "f1 of all": round(sum(kept) / len(rows), 3),
        "f1 with spans": round(sum(_with_span(row, least, row.f1) for row in rows) / len(rows), 3),
        "f1 with spans or refused": round(sum(_with_span(row, least, 0.0) for row in rows) / len(rows), 3),
    }


def _with_span(row: Row, least: float, otherwise: float) -> float:
    """Return the F1 of a supported answer, else of the checker's own supported answer, else `otherwise`."""
    if row.answered and row.support >= least:
        return row.f1
    return row.own_f1 if row.own_support >= least else otherwise


def _chosen(row: Row, margin: float) -> float:
    """Return the F1 of the checker's answer if its support is above that of the reader's by a margin, else of it."""
    return row.own_f1 if row.own_support > row.reader_support + margin else row.f1


async def measure(files: Sequence[Path], out: Path, checker: EvidenceChecker, system: str) -> dict[str, Any]:
    """Return the tables of a system's runs."""
    questions = {question.key: question for file in read_questions(files) for question in file.questions}
    results = (await open_results(out)).by_thread.values()
    async with open_store(Settings(runs=out)) as store:
        runs = RunService(store)
        chosen = [each for each in results if each["system"] == system and questions[each["question"]].answers]
        return summary([await read_run(runs, each, questions[each["question"]], checker) for each in chosen])


def main(
    questions: Annotated[list[Path], typer.Argument(help="The evaluation's files of questions.")],
    *,
    out: Annotated[Path, typer.Option(help="The evaluation's folder.")],
    checker: Annotated[Path, typer.Option(help="Folder of the exported checker.")],
    system: Annotated[str, typer.Option(help="The system whose runs are read.")] = "plain-rag",
    threads: Annotated[int | None, typer.Option(help="Threads; default: all cores.")] = None,
) -> None:
    """Measure, and print JSON."""
    loaded = EvidenceChecker.load(checker, threads=threads)
    typer.echo(json.dumps(asyncio.run(measure(questions, out, loaded, system)), indent=1))


if __name__ == "__main__":
    typer.run(main)
