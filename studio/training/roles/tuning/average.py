"""Average adapters of one model.

    python -m sleuth.studio.training.roles.tuning.average ADAPTER ADAPTER --out FOLDER

Adapters that were tuned one after the other lie near each other, and what one has gained where the other has lost is
often kept by their mean (Wortsman et al., 2022, Model soups).
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.studio.model_server import CONFIG, WEIGHTS, chosen, rank
from sleuth.tools.errors import UsageError


def average(folders: Sequence[Path], out: Path) -> None:
    """Writes the adapter whose every weight is the mean of theirs.

    Raises:
        UsageError: a folder that holds no LoRA adapter, or adapters of several ranks or models.
    """
    import torch
    from safetensors.torch import load_file, save_file

    for folder in folders:
        chosen([str(folder)])
    weights = [load_file(folder / WEIGHTS) for folder in folders]
    shapes = [{name: weight.shape for name, weight in each.items()} for each in weights]
    if any(each != shapes[0] for each in shapes):
        ranks = ", ".join(f"{folder} has rank {rank(folder)}" for folder in folders)
        raise UsageError(f"Only adapters of one model and one rank have a mean: {ranks}.")
    kind = {name: weight.dtype for name, weight in weights[0].items()}
    means = {name: torch.stack([each[name].float() for each in weights]).mean(0).to(kind[name]) for name in kind}
    out.mkdir(parents=True, exist_ok=True)
    save_file(means, out / WEIGHTS, metadata={"format": "pt"})
    shutil.copyfile(folders[0] / CONFIG, out / CONFIG)


def main(
    adapters: Annotated[list[Path], typer.Argument(help="Folders of adapters of one model and one rank.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder of their mean.")],
) -> None:
    """Write the mean of adapters."""
    average(adapters, out)
    typer.echo(f"The mean of {len(adapters)} adapters is in {out}.")


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
