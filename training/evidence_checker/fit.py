"""Fit the probabilities of an evidence checker: the temperatures, and the support of an answer.

    python -m training.evidence_checker.fit DATA --checker FOLDER

The examples are of the part `tune`. Writes what was fitted to the settings of the folder.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from sleuth.studio.cli.app import run_cli
from sleuth.studio.evaluation.scoring import f1
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.evidence_checker.checker import SETTINGS, Reading, SupportFit, Temperatures, log_odds
from training.evidence_checker.batches import PIECE
from training.evidence_checker.examples import UNKNOWN, Example, with_neighbors
from training.evidence_checker.measure import expected_answers, first_of_each, held_out
from training.evidence_checker.sources import MULTI_HOP, of_part, read_items

_BOUNDS = (0.1, 10.0)
_RIGHT = 0.5
"""The least F1 of a right answer."""


def fit(checker: EvidenceChecker, examples: Sequence[Example]) -> tuple[Temperatures, SupportFit]:
    """Return the temperatures with the smallest loss on examples (Guo et al., 2017, section 4.2), and the support.

    Args:
        checker: a checker without temperatures.
        examples: questions and statements.
    """
    asked = [each for each in examples if each.relation == UNKNOWN and each.answerable != UNKNOWN]
    stated = [each for each in examples if each.relation != UNKNOWN]
    readings = checker.read_batch([(each.text, each.passages) for each in asked])
    odds = np.array([[0.0, log_odds(reading.answerable)] for reading in readings])
    relations = np.array([checker.logits(each.text, each.passages)[4:7] for each in stated])
    answerable = _temperature(odds, [each.answerable for each in asked])
    relation = _temperature(relations, [each.relation for each in stated])
    temperatures = Temperatures(answerable=answerable, relation=relation)
    return temperatures, fit_support(asked, readings, temperatures)


def fit_support(asked: Sequence[Example], readings: Sequence[Reading], temperatures: Temperatures) -> SupportFit:
    """Return the logistic regression of whether the answer of each reading is right."""
    from sklearn.linear_model import LogisticRegression

    odds = [
        [log_odds(reading.answerable) / temperatures.answerable, log_odds(reading.share_of(reading.answer))]
        for reading in readings
    ]
    right = [
        each.answerable == 1 and f1(reading.answer, expected_answers(each)) >= _RIGHT
        for each, reading in zip(asked, readings, strict=True)
    ]
    if len(set(right)) < 2:
        return SupportFit()
    fitted = LogisticRegression(C=100).fit(odds, right)
    constant, weights = round(float(fitted.intercept_[0]), 3), np.round(fitted.coef_[0], 3).tolist()
    return SupportFit(constant=constant, answerable=weights[0], share=weights[1])


def _temperature(logits: NDArray[np.floating], labels: Sequence[int]) -> float:
    """Return the temperature with the smallest loss; 1 without examples."""
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    def loss(temperature: float) -> float:
        return -float(log_softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels].mean())

    return round(float(minimize_scalar(loss, bounds=_BOUNDS, method="bounded").x), 3) if labels else 1.0


def examples_to_fit(data: Path, worlds: Path | None, most: int) -> list[Example]:
    """Return examples of the part `tune`: `most` of each set and composition, a quarter of multi-hop questions."""
    held = held_out(with_neighbors(of_part(read_items(data, worlds), "tune")))
    return [
        example
        for is_multi_hop, number in ((False, most), (True, most // 4))
        for example in first_of_each([each for each in held if (each.set in MULTI_HOP) == is_multi_hop], number)
    ]


def write_settings(folder: Path, temperatures: Temperatures, support: SupportFit) -> None:
    """Write the fit to a checker's folder; its settings get the folder's name and the size of pieces if it has none."""
    file = folder / SETTINGS
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"name": folder.name, "piece": PIECE}
    settings = {**known, "temperatures": asdict(temperatures), "support": asdict(support)}
    file.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def main(
    data: Annotated[Path, typer.Argument(help="Folder with the training files.")],
    *,
    checker: Annotated[Path, typer.Option(help="Folder of the checker.")],
    most: Annotated[int, typer.Option(help="Examples of each set and composition.")] = 60,
    threads: Annotated[int | None, typer.Option(help="Threads; default: all cores.")] = None,
) -> None:
    """Write the settings of a checker, and print them as JSON."""
    write_settings(checker, Temperatures(), SupportFit())
    write_settings(checker, *fit(EvidenceChecker.load(checker, threads=threads), examples_to_fit(data, None, most)))
    typer.echo((checker / SETTINGS).read_text(encoding="utf-8"))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
