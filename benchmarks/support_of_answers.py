"""Answers by the color that the evidence check gives them: how many of the green ones are right.

    python -m benchmarks.support_of_answers DATA HOMES --half 1

Each question of the three sets is read with the first five passages of graph search, and once more without those that
contain its answer. The answers are the checker's own and, as those of another reader, its next two spans and the
expected answer where the passages contain it. `HOMES` stores a collection of each set. Prints JSON: for both kinds the
number of answers in each color, and the share of right ones (F1 of 0.5 or more) with a bootstrap interval.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from sleuth.graphs.core.answer import Support
from sleuth.graphs.evidence.check import MIN_SUPPORT, as_evidence, assess
from sleuth.graphs.evidence.citations import cite_sentence
from sleuth.studio.evaluation.scoring import f1, interval
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.settings import Settings
from sleuth.tools.types import Passage
from training.retrieved import SETS, retrieve

ALL = 1_000
"""More than the questions of a set."""


def passages_of(row: dict[str, Any]) -> list[list[Passage]]:
    """Return the found passages, and those without the answer if there are any."""
    found = [
        Passage(id=f"{at}", document_id="", title=title, text=text, start=0, end=len(text))
        for at, (title, text) in enumerate(row["sources"])
    ]
    wanted = [each.casefold() for each in (row["answer"], *row.get("answer_aliases", ()))]
    left = [each for each in found if not any(answer in each.text.casefold() for answer in wanted)]
    return [found, left] if left and len(left) < len(found) else [found]


def answers_of(row: dict[str, Any], found: list[Passage], checker: EvidenceChecker) -> Iterator[tuple[str, str]]:
    """Yield answers to judge, with their kind."""
    reading = checker.read(row["question"], as_evidence(found))
    yield "own", reading.answer
    others = [span.text for span in reading.spans[1:3]]
    has = [each for each in (row["answer"],) if any(each.casefold() in passage.text.casefold() for passage in found)]
    for text in dict.fromkeys([*others, *has]):
        if text != reading.answer:
            yield "other", text


async def judge(row: dict[str, Any], answer: str, found: list[Passage], checker: EvidenceChecker) -> Support:
    """Return the support of an answer that cites the first passage with it, or the first one."""
    places = [(each, each.text.casefold().find(answer.casefold())) for each in found]
    cited, at = next(((each, at) for each, at in places if at >= 0), (found[0], 0))
    return await assess(checker, row["question"], answer, [cite_sentence(cited, at)], found)


def color_of(support: Support) -> str:
    """Return the color of an answer; those below MIN_SUPPORT are refused with the demo model, and amber with others."""
    if not support.get("weak"):
        return "green"
    return "amber" if support["score"] >= MIN_SUPPORT else "refused"


def main(
    data: Annotated[Path, typer.Argument(help="Folder with 2wiki, hotpot and musique.")],
    homes: Annotated[Path, typer.Argument(help="Folder for a collection of each set.")],
    *,
    half: Annotated[int, typer.Option(help="0: for choosing, 1: for reporting.")] = 1,
    questions: Annotated[int, typer.Option(help="Questions of each set.")] = 100,
) -> None:
    """Measure, and print JSON."""
    checker = EvidenceChecker.of_settings(Settings())
    right: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name in SETS:
        for row in asyncio.run(retrieve(data / name, homes / name, half, ALL))[:questions]:
            wanted = (row["answer"], *row.get("answer_aliases", ()))
            for found in passages_of(row):
                for kind, answer in answers_of(row, found, checker):
                    color = color_of(asyncio.run(judge(row, answer, found, checker)))
                    right[kind][color].append(float(f1(answer, wanted) >= 0.5))
    table = {
        kind: {color: interval(each, seed=0) for color, each in sorted(colors.items())}
        for kind, colors in right.items()
    }
    typer.echo(json.dumps(table, indent=1))


if __name__ == "__main__":
    typer.run(main)
