"""Does the checker find the gold passages among more? Recall of its five most relevant of twenty.

    python -m training.evidence_checker.ranking DATA HOMES --checker FOLDER [--half 0] [--questions 100]

DATA has the folders of the sets; HOMES gets a collection of each. Graph search finds twenty passages, which the checker
reads together; `relevance` is its order, `both` adds the reciprocal ranks of both orders.
"""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.studio.evaluation.scoring import interval
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from training.retrieved import PASSAGES, SETS, retrieve

FOUND = 20
_FLATTENING = 10
"""Added to each rank: the larger, the less the first places count."""


def orders_of(row: dict[str, Any], checker: EvidenceChecker) -> dict[str, list[int]]:
    """Return orders of a question's passages, as places in that of graph search."""
    passages = [Evidence(title=title, text=text) for title, text in row["sources"]]
    relevance = list(checker.read(row["question"], passages).by_relevance)
    both = {at: 1 / (_FLATTENING + at) + 1 / (_FLATTENING + place) for place, at in enumerate(relevance)}
    return {
        "graph": list(range(len(passages))),
        "relevance": relevance,
        "both": sorted(both, key=lambda at: -both[at]),
    }


def recall(row: dict[str, Any], order: list[int]) -> float:
    """Return the share of the gold passages that are among the first five."""
    shown = {row["ids"][at] for at in order[:PASSAGES]}
    return len(shown & set(row["gold_ids"])) / len(row["gold_ids"])


def main(
    data: Annotated[Path, typer.Argument(help="Folder of the sets.")],
    homes: Annotated[Path, typer.Argument(help="Folder for collections.")],
    *,
    checker: Annotated[Path | None, typer.Option(help="Folder of the checker; default: shipped.")] = None,
    half: Annotated[int, typer.Option(help="0 to choose settings, 1 to report.")] = 0,
    questions: Annotated[int, typer.Option(help="Questions of each set.")] = 100,
) -> None:
    """Print recall@5 of each order and its difference from graph search, with 95 % intervals."""
    loaded = EvidenceChecker.load(checker)
    for name in SETS:
        rows = asyncio.run(retrieve(data / name, homes / name, half, questions, k=FOUND))
        found: dict[str, list[float]] = {}
        for row in rows:
            for order, places in orders_of(row, loaded).items():
                found.setdefault(order, []).append(recall(row, places))
        for order, values in found.items():
            more = [value - before for value, before in zip(values, found["graph"], strict=True)]
            typer.echo(f"{name} {len(rows)} {order}: {interval(values, seed=0)}, difference {interval(more, seed=0)}")


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
