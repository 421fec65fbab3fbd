"""Reduce the rank of a LoRA adapter: `python -m training.roles.tuning.reduce_rank ADAPTER OUT --rank 12`.

The product of its two matrices is approximated by singular value decomposition, the best of that rank.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.studio.model_server.adapter import CONFIG, WEIGHTS


def reduce_rank(adapter: Path, out: Path, rank: int) -> float:
    """Write the adapter with a smaller rank; return the share of its squared norm that is left out, at most 1.

    Args:
        adapter: the folder of the adapter.
        out: the folder to write.
        rank: the new rank.
    """
    import torch
    from safetensors.torch import load_file, save_file

    weights, reduced = load_file(adapter / WEIGHTS), {}
    whole = left_out = 0.0
    for down_name in (name for name in weights if "lora_A" in name):
        up_name = down_name.replace("lora_A", "lora_B")
        up_basis, up = torch.linalg.qr(weights[up_name].float())
        down_basis, down = torch.linalg.qr(weights[down_name].float().T)
        left, sizes, right = torch.linalg.svd(up @ down.T)
        roots = sizes[:rank].sqrt()
        reduced[up_name] = ((up_basis @ left[:, :rank]) * roots).bfloat16().contiguous()
        reduced[down_name] = ((roots[:, None] * right[:rank]) @ down_basis.T).bfloat16().contiguous()
        whole += float(sizes.square().sum())
        left_out += float(sizes[rank:].square().sum())
    config = json.loads((adapter / CONFIG).read_text(encoding="utf-8"))
    alpha = config["lora_alpha"] * rank / config["r"]  # alpha / rank multiplies the product, so it stays
    out.mkdir(parents=True, exist_ok=True)
    save_file(reduced, out / WEIGHTS, metadata={"format": "pt"})
    (out / WEIGHTS).chmod(0o644)
    config |= {"r": rank, "lora_alpha": int(alpha) if alpha.is_integer() else alpha}
    (out / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return left_out / whole if whole else 0.0


def main(
    adapter: Annotated[Path, typer.Argument(help="Folder of the adapter.")],
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    *,
    rank: Annotated[int, typer.Option(help="The new rank.")],
) -> None:
    """Write an adapter of a smaller rank, and print what is left out."""
    typer.echo(f"{reduce_rank(adapter, out, rank):.1%} of the squared norm is left out.")


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
