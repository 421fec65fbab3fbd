"""Export a trained evidence checker as an ONNX graph, with weights in 8 bits.

    python -m training.evidence_checker.export DATA --run RUN --out FOLDER
    python -m training.evidence_checker.export DATA --run RUN --base BASE --adapter --out FOLDER

`RUN` is the folder that the training has written. The temperatures of the probabilities are fitted on the part `tune`.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from sleuth.studio.cli.app import run_cli
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.evidence_checker.checker import NETWORK, SETTINGS, TOKENIZER, Temperatures
from sleuth.tools.evidence_checker.large_model import ADAPTER, build_large_checker
from training.evidence_checker.batches import PIECE
from training.evidence_checker.examples import UNKNOWN, Example, with_neighbours
from training.evidence_checker.measure import first_of_each, held_out
from training.evidence_checker.model import adapter_weights, merge
from training.evidence_checker.sources import of_part, read_items
from training.evidence_checker.train import trained_network
from training.onnx_export import base_folder, export, multiply_in_8_bits, quantize_weights, remove_weights

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


def package_adapter(network: "Module", tokenizer: Path, out: Path) -> None:
    """Write an adapted network without its base to a folder, from which build_large_checker reads it."""
    from safetensors.numpy import save_file

    weights = {name: weight.half().numpy() for name, weight in adapter_weights(network).items()}
    model = export(merge(network), ["tokens", "whole"])
    multiply_in_8_bits(model)
    quantize_weights(model)
    remove_weights(model)
    out.mkdir(parents=True, exist_ok=True)
    save_file(weights, out / ADAPTER)
    (out / NETWORK).write_bytes(model.SerializeToString(deterministic=True))
    shutil.copyfile(tokenizer, out / TOKENIZER)
    write_settings(out, Temperatures())


def write_settings(out: Path, temperatures: Temperatures) -> None:
    """Write the name, which is the folder's, the temperatures and the size of pieces to a checker's folder."""
    fitted = asdict(temperatures)
    settings = {"name": out.name, "temperatures": fitted, "piece": PIECE}
    (out / SETTINGS).write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


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
    adapter: Annotated[
        bool, typer.Option(help="Write the adapter without its base, for `sleuth model install reader`.")
    ] = False,
    support: Annotated[float, typer.Option(help="Exponent of the support of an answer.")] = 1.0,
    most: Annotated[int, typer.Option(help="Examples of each set and composition for the temperatures.")] = 100,
    eight_bits: Annotated[bool, typer.Option(help="Store the weights in 8 bits, or in 32.")] = True,
    threads: Annotated[int | None, typer.Option(help="Threads; default: all cores.")] = None,
) -> None:
    """Write a checker's folder, and print its size and temperatures as JSON."""
    start = base or base_folder()
    network = trained_network(run, start)
    items = read_items(data, worlds)
    examples = first_of_each(held_out(with_neighbours(of_part(items, "tune"))), most)
    if adapter:
        package_adapter(network, start / TOKENIZER, out)
        build_large_checker(start / "model.safetensors", built := run / "built", out)
    else:
        convert(merge(network), start / TOKENIZER, built := out, eight_bits=eight_bits)
    fitted = fit_temperatures(EvidenceChecker.load(built, threads=threads), examples)
    write_settings(out, replace(fitted, support=support))
    size = sum(file.stat().st_size for file in out.iterdir())
    typer.echo(json.dumps({"bytes": size, **json.loads((out / SETTINGS).read_text(encoding="utf-8"))}, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
