"""Measure an exported evidence checker on the part `report`, which neither training nor settings have used.

python -m training.evidence_checker.check DATA --checker FOLDER
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.tools.evidence_checker import EvidenceChecker
from training.evidence_checker.examples import Example, with_neighbours
from training.evidence_checker.measure import held_out, measure
from training.evidence_checker.sources import MULTI_HOP, of_part, read_items, read_worlds

_TIMED = 20


def seconds_per_passage(checker: EvidenceChecker, examples: Sequence[Example]) -> float:
    """Return the time to read a question's passages, per passage: the median of some multi-hop questions.

    It contains both readings, as in production; the first question, for which kernels are made, does not count.
    """
    chosen = [example for example in examples if example.set in MULTI_HOP][: _TIMED + 1]
    taken = []
    for example in chosen:
        begun = time.perf_counter()
        checker.read(example.text, example.passages)
        taken.append((time.perf_counter() - begun) / len(example.passages))
    return sorted(taken[1:])[len(taken) // 2]


def main(
    data: Annotated[Path, typer.Argument(help="Folder with the training files.")],
    *,
    checker: Annotated[Path, typer.Option(help="Folder of the exported checker.")],
    worlds: Annotated[Path | None, typer.Option(help="Folder of the test split of the synthetic worlds.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; default: all cores.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="Only this set, such as squad; repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Of the negatives and the intervals.")] = 0,
) -> None:
    """Print the metrics of a checker on held-back questions and statements as JSON."""
    loaded = EvidenceChecker.load(checker, threads=threads)
    items = of_part(read_items(data), "report") + (read_worlds(worlds) if worlds else [])
    examples = held_out(with_neighbours(items), seed=seed)
    chosen = [example for example in examples if not sets or example.set in sets]
    found = measure(loaded, chosen, seed=seed)
    if any(example.set in MULTI_HOP for example in chosen):
        found["milliseconds_per_passage"] = round(1000 * seconds_per_passage(loaded, chosen), 2)
    typer.echo(json.dumps(found, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
