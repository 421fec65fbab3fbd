"""Export a trained evidence checker as an ONNX graph, with weights in 8 bits.

    python -m training.evidence_checker.export DATA --run RUN --out FOLDER
    python -m training.evidence_checker.export DATA --run RUN --base BASE --adapter --out FOLDER

`RUN` is the folder that the training has written. The settings are fitted as by `training.evidence_checker.fit`.
"""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.evidence_checker.checker import NETWORK, SETTINGS, TOKENIZER, SupportFit, Temperatures
from sleuth.tools.evidence_checker.large_model import ADAPTER, build_large_checker
from training.evidence_checker.fit import examples_to_fit, fit, write_settings
from training.evidence_checker.model import adapter_weights, merge
from training.evidence_checker.train import trained_network
from training.onnx_export import base_folder, export, multiply_in_8_bits, quantize_weights, remove_weights

if TYPE_CHECKING:
    from torch.nn import Module


def convert(network: "Module", tokenizer: Path, out: Path, *, eight_bits: bool = True) -> None:
    """Write a network and its tokenizer to a folder, from which EvidenceChecker.load reads them."""
    model = export(network, ["tokens", "whole"])
    if eight_bits:
        quantize_weights(model)
    out.mkdir(parents=True, exist_ok=True)
    (out / NETWORK).write_bytes(model.SerializeToString(deterministic=True))
    shutil.copyfile(tokenizer, out / TOKENIZER)
    write_settings(out, Temperatures(), SupportFit())


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
    write_settings(out, Temperatures(), SupportFit())


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
    most: Annotated[int, typer.Option(help="Examples of each set and composition for the fit.")] = 100,
    eight_bits: Annotated[bool, typer.Option(help="Store the weights in 8 bits, or in 32.")] = True,
    threads: Annotated[int | None, typer.Option(help="Threads; default: all cores.")] = None,
) -> None:
    """Write a checker's folder, and print its size and settings as JSON."""
    start = base or base_folder()
    network = trained_network(run, start)
    if adapter:
        package_adapter(network, start / TOKENIZER, out)
        build_large_checker(start / "model.safetensors", built := run / "built", out)
    else:
        convert(merge(network), start / TOKENIZER, built := out, eight_bits=eight_bits)
    write_settings(out, *fit(EvidenceChecker.load(built, threads=threads), examples_to_fit(data, worlds, most)))
    size = sum(file.stat().st_size for file in out.iterdir())
    typer.echo(json.dumps({"bytes": size, **json.loads((out / SETTINGS).read_text(encoding="utf-8"))}, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
