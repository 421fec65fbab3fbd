"""Measure an evidence checker, exported or in training.

    python -m training.evidence_checker.check DATA --checker FOLDER
    python -m training.evidence_checker.check DATA --run RUN --base BASE --part tune --homes HOMES --questions 100

The part `report` is for published figures: neither training nor settings have used it. With `--homes`, the questions of
DATA/2wiki, hotpot and musique are read, too: with the first five passages of graph search, and with their gold ones.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.evidence_checker.inputs import Layout
from training.evidence_checker.batches import PIECE
from training.evidence_checker.examples import KINDS, UNKNOWN, Example, with_neighbors
from training.evidence_checker.measure import first_of_each, held_out, measure
from training.evidence_checker.model import runner
from training.evidence_checker.sources import MULTI_HOP, Part, of_part, read_items, read_worlds
from training.evidence_checker.train import trained_network
from training.onnx_export import base_folder
from training.questions import Row, lines
from training.retrieved import SETS, retrieve

_TIMED = 20
_ALL = 1000
"""More than the questions of a set."""


class _Document(Row):
    id: str
    title: str
    text: str


def questions_of(data: Path, homes: Path, *, half: int, most: int) -> Iterator[Example]:
    """Yield questions of the three sets with passages that search found, and with their gold passages.

    `homes` stores a collection of each set, and what was found.
    """
    for name in SETS:
        documents = {line.id: line for line in lines(data / name / "corpus.jsonl.gz", _Document)}
        for row in asyncio.run(retrieve(data / name, homes / name, half, _ALL))[:most]:
            gold = [Evidence(title=documents[id].title, text=documents[id].text) for id in row["gold_ids"]]
            found = [Evidence(title=title, text=text) for title, text in row["sources"]]
            yield _example(row, f"{name}, graph search", found, gold)
            yield _example(row, f"{name}, gold passages", gold, gold)


def _example(row: dict[str, Any], name: str, passages: Sequence[Evidence], gold: Sequence[Evidence]) -> Example:
    kind = row["answer"] if row["answer"] in KINDS else "span"
    return Example(
        set=name,
        text=row["question"],
        passages=tuple(passages),
        relevant=tuple(int(passage in gold) for passage in passages),
        answers=(row["answer"], *row.get("answer_aliases", ())) if kind == "span" else (),
        answerable=1 if all(passage in passages for passage in gold) else UNKNOWN,
        kind=KINDS[kind],
        made="gold not found",
    )


def checker_of_run(run: Path, base: Path, threads: int | None) -> EvidenceChecker:
    """Return the checker of a training's last checkpoint."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    return EvidenceChecker(Layout(base / "tokenizer.json", piece=PIECE), runner(trained_network(run, base)))


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
    checker: Annotated[Path | None, typer.Option(help="Folder of the exported checker; default: shipped.")] = None,
    run: Annotated[Path | None, typer.Option(help="Folder of a training, to measure its last checkpoint.")] = None,
    base: Annotated[Path | None, typer.Option(help="Folder of the run's encoder; default: MiniLM.")] = None,
    part: Annotated[Part, typer.Option(help="Of the data: report, or tune to choose settings.")] = "report",
    most: Annotated[int | None, typer.Option(help="Examples of each set and composition; default: all.")] = None,
    homes: Annotated[Path | None, typer.Option(help="Folder for collections; adds the evaluation questions.")] = None,
    half: Annotated[int, typer.Option(help="Of the evaluation questions: 0 to choose settings, 1 to report.")] = 0,
    questions: Annotated[int, typer.Option(help="Evaluation questions of each set.")] = _ALL,
    worlds: Annotated[Path | None, typer.Option(help="Folder of the test split of the synthetic worlds.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; default: all cores.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="Only this set, such as squad; repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Of the negatives and the intervals.")] = 0,
) -> None:
    """Print the metrics of a checker on held-back questions and statements as JSON."""
    loaded = (
        checker_of_run(run, base or base_folder(), threads) if run else EvidenceChecker.load(checker, threads=threads)
    )
    items = of_part(read_items(data), part) + (read_worlds(worlds) if worlds else [])
    examples = [example for example in held_out(with_neighbors(items), seed=seed) if not sets or example.set in sets]
    chosen = first_of_each(examples, most or len(examples))
    chosen += questions_of(data, homes, half=half, most=questions) if homes else []
    found = measure(loaded, chosen, seed=seed)
    if any(example.set in MULTI_HOP for example in chosen):
        found["milliseconds_per_passage"] = round(1000 * seconds_per_passage(loaded, chosen), 2)
    typer.echo(json.dumps(found, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
