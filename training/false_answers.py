"""Questions that a collection does not answer: how often the evidence checker supports an answer to them.

    python -m training.false_answers DATA

`DATA` has `train/squad2.jsonl.gz`. The checker reads the five passages that are most similar to each question of its
part `report`, half of them for choosing thresholds and half for reporting (`--half`): questions that SQuAD 2.0 wrote to
be unanswerable, answerable ones without their own passage, and answerable ones. Prints the share of answers whose
support reaches each threshold.
"""

import gzip
import json
import random
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sleuth.studio.evaluation.scoring import f1
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.search.vectors import Vectors
from sleuth.tools.search.vectors.embedder import LocalEmbedder
from sleuth.tools.settings import Settings
from training.evidence_checker.sources import part_of
from training.retrieved import half_of

THRESHOLDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8)
SHOWN = 5


def support_of(
    rows: list[dict[str, Any]],
    passages: list[Evidence],
    vectors: Vectors,
    *,
    checker: EvidenceChecker,
    embedder: LocalEmbedder,
    leave_out: bool,
) -> list[tuple[float, bool]]:
    """Return the support of the checker's answer to each question, and whether the answer is right."""
    results = []
    for row in rows:
        order = np.argsort(-vectors @ np.ravel(embedder.embed_query(row["question"])))
        near = [passages[at] for at in order[: SHOWN + 1]]
        shown = [each for each in near if not (leave_out and each.text == row["paragraph"])][:SHOWN]
        reading = checker.read(row["question"], shown)
        right = bool(row["answers"]) and f1(reading.answer, row["answers"]) >= 0.5
        results.append((reading.support_of(reading.answer), right))
    return results


def main(
    data: Annotated[Path, typer.Argument(help="Folder with train/squad2.jsonl.gz.")],
    *,
    half: Annotated[int, typer.Option(help="0: for choosing, 1: for reporting.")] = 0,
    limit: Annotated[int, typer.Option(help="Questions of each kind.")] = 150,
    pool: Annotated[int, typer.Option(help="Passages of the collection.")] = 1_200,
) -> None:
    """Measure, and print JSON."""
    with gzip.open(data / "train" / "squad2.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    held = [
        row
        for row in rows
        if part_of(row["paragraph"], one_of=5 if row["split"] == "dev" else 20) == "report"
        and half_of(row["id"]) == half
    ]
    random.Random(0).shuffle(held)  # noqa: S311 - a repeatable sample
    answerable = [row for row in held if row["answers"]][:limit]
    unanswerable = [row for row in held if not row["answers"]][:limit]
    titles = {row["paragraph"]: row["title"] for row in [*held, *rows[::4]]}
    passages = [Evidence(title=title, text=text) for text, title in list(titles.items())[:pool]]
    checker, embedder = EvidenceChecker.of_settings(Settings()), LocalEmbedder(Settings().embedder)
    vectors = np.asarray(embedder.embed_passages([f"{each.title}. {each.text}" for each in passages]))
    table: dict[str, Any] = {}
    for name, chosen, leave_out in (
        ("unanswerable", unanswerable, False),
        ("own passage left out", answerable, True),
        ("answerable", answerable, False),
    ):
        results = support_of(chosen, passages, vectors, checker=checker, embedder=embedder, leave_out=leave_out)
        counted = [support for support, right in results if right or name != "answerable"]
        table[name] = {"questions": len(results), "counted": len(counted)} | {
            str(least): round(float(np.mean([support >= least for support in counted])), 3) for least in THRESHOLDS
        }
    typer.echo(json.dumps(table, indent=1))


if __name__ == "__main__":
    typer.run(main)
