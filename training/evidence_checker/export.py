"""Export a trained evidence checker as an ONNX graph, with weights in 8 bits.

    python -m training.evidence_checker.export DATA --run RUN --out FOLDER

`RUN` is the folder that the training has written. The temperatures of the probabilities are fitted on the part `tune`.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from sleuth.studio.cli.app import run_cli
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.evidence_checker.checker import NETWORK, SETTINGS, TOKENIZER, Temperatures
from training.evidence_checker.batches import PIECE
from training.evidence_checker.examples import UNKNOWN, Example, with_neighbours
from training.evidence_checker.measure import held_out
from training.evidence_checker.model import merge
from training.evidence_checker.sources import of_part, read_items
from training.evidence_checker.train import trained_network
from training.onnx_export import base_folder, export, quantize_weights

if TYPE_CHECKING:
    from torch.nn import Module

_BOUNDS = (0.1, 10.0)


def convert(network: "Module", tokenizer: Path, out: Path, *, eight_bits: bool = True) -> None:
    """Write a network and its tokenizer to a folder, from which EvidenceChecker.load reads them."""
    model = export(network, ["tokens", "whole"])
    if eight_bits:
        quantize_weights(model)
    out.mkdir(parents=True, exist_ok=True)
    (out / NETWORK).write_bytes(model.SerializeToString(deterministic=True))
    shutil.copyfile(tokenizer, out / TOKENIZER)
    write_settings(out, Temperatures())


def write_settings(out: Path, temperatures: Temperatures) -> None:
    """Write the temperatures and the size of pieces to a checker's folder."""
    fitted = {"answerable": temperatures.answerable, "relation": temperatures.relation}
    (out / SETTINGS).write_text(json.dumps({"temperatures": fitted, "piece": PIECE}, indent=1) + "\n", encoding="utf-8")


def fit_temperatures(checker: EvidenceChecker, examples: Sequence[Example]) -> Temperatures:
    """Return the temperatures with the smallest loss on examples (Guo et al., 2017, section 4.2)."""
    from scipy.optimize import minimize_scalar

    logits = np.stack([checker.logits(each.text, each.passages) for each in examples]).astype(np.float64)
    answerable = np.array([each.answerable for each in examples])
    relation = np.array([each.relation for each in examples])
    known, stated = answerable != UNKNOWN, relation != UNKNOWN
    asked = np.stack([np.zeros(known.sum()), logits[known, 0]], axis=1)
    fitted = [
        minimize_scalar(_loss, bounds=_BOUNDS, args=pair, method="bounded").x if len(pair[1]) else 1.0
        for pair in ((asked, answerable[known]), (logits[stated, 4:7], relation[stated]))
    ]
    return Temperatures(answerable=round(float(fitted[0]), 3), relation=round(float(fitted[1]), 3))


def _loss(temperature: float, logits: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    from scipy.special import log_softmax

    return -float(log_softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels].mean())


def main(
    data: Annotated[Path, typer.Argument(help="Folder with the training files.")],
    *,
    run: Annotated[Path, typer.Option(help="Folder that the training has written.")],
    out: Annotated[Path, typer.Option(help="The checker's folder.")],
    worlds: Annotated[Path | None, typer.Option(help="Folder of synthetic worlds it has learned from.")] = None,
    base: Annotated[Path | None, typer.Option(help="Folder of the encoder that was trained; default: MiniLM.")] = None,
    eight_bits: Annotated[bool, typer.Option(help="Store the weights in 8 bits, or in 32.")] = True,
    threads: Annotated[int | None, typer.Option(help="Threads; default: all cores.")] = None,
) -> None:
    """Write a checker's folder, and print its size and temperatures as JSON."""
    start = base or base_folder()
    convert(merge(trained_network(run, start)), start / "tokenizer.json", out, eight_bits=eight_bits)
    items = read_items(data, worlds)
    examples = held_out(with_neighbours(of_part(items, "tune")))
    temperatures = fit_temperatures(EvidenceChecker.load(out, threads=threads), examples)
    write_settings(out, temperatures)
    size = sum(file.stat().st_size for file in out.iterdir())
    typer.echo(json.dumps({"bytes": size, **json.loads((out / SETTINGS).read_text(encoding="utf-8"))}, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
