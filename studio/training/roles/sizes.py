"""What tuning a model takes, without doing it: `python -m sleuth.studio.training.roles.sizes MODEL`.

The model is built from its configuration with shapes alone, so its weights need not be there, and a step is taken with
shapes alone: what that step would keep in memory is counted. For models too large for this machine.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sleuth.studio.cli import guarded
from sleuth.studio.training.roles.merged import LAYERS, lora
from sleuth.studio.training.roles.plan import USUAL
from sleuth.tools.errors import UsageError

if TYPE_CHECKING:
    import torch

GIB = 2**30
ATTENTION = "sleuth-shapes"


def sizes(base: Path, *, rank: int = USUAL.rank, tokens: int = USUAL.tokens, row: int = 800) -> dict[str, Any]:
    """Parameters, and GiB on the device, of tuning the model whose `config.json` is in a folder.

    Args:
        base: the model's folder; other files are not read.
        rank: of the adapter.
        tokens: in a batch.
        row: tokens of an example, as many as fit into a batch.

    Raises:
        UsageError: there is no configuration, or the model has none of the layers that are tuned.
    """
    import torch
    from peft import get_peft_model

    model = _shapes(base)
    if not any(name.endswith(LAYERS) for name, _ in model.named_modules()):
        raise UsageError(f"The model in {base} has none of the layers {', '.join(LAYERS)}: it cannot be tuned so.")
    bare = sum(each.numel() for each in model.parameters())
    with torch.device("meta"):
        tuned: Any = get_peft_model(model, lora(rank))
    learned = sum(each.numel() for each in tuned.parameters() if each.requires_grad)
    rows = max(1, tokens // row)
    ids = torch.zeros(rows, row, dtype=torch.long, device="meta")
    kept = _kept(lambda: tuned.get_base_model().model(input_ids=ids, use_cache=False))  # few places need logits
    memory = {
        "weights": 2 * bare / GIB,
        "adapter and its optimizer": (4 + 4 + 8) * learned / GIB,  # weights, slopes, two moments, in float32
        "one batch": kept / GIB,
    }
    return {
        "parameters": bare,
        "learned": learned,
        "adapter_megabytes": round(2 * learned / 1e6, 1),
        "batch": [rows, row],
        "gib": {name: round(each, 2) for name, each in memory.items()},
        "gib_in_all": round(sum(memory.values()), 2),
    }


def _shapes(base: Path) -> Any:  # noqa: ANN401 - transformers is not typed
    import torch
    from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM

    kind: Any = AutoModelForCausalLM
    AttentionInterface.register(ATTENTION, _attend)
    try:
        config = AutoConfig.from_pretrained(base, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"{base} has no configuration of a model that transformers knows ({error}).") from None
    with torch.device("meta"):
        return kind.from_config(config, dtype=torch.bfloat16, attn_implementation=ATTENTION)


def _kept(step: Callable[[], Any]) -> int:
    """Bytes that a step keeps for its way back, each storage once; weights are not among them."""
    import torch

    found: dict[int, torch.UntypedStorage] = {}

    def note(kept: torch.Tensor) -> torch.Tensor:
        if not isinstance(kept, torch.nn.Parameter) and not kept.is_leaf:
            storage = kept.untyped_storage()
            found[storage._cdata] = storage
        return kept

    with torch.autograd.graph.saved_tensors_hooks(note, lambda kept: kept):
        step()
    return sum(each.nbytes() for each in found.values())


@cache
def _attention() -> Any:  # noqa: ANN401 - a class that needs PyTorch, which is imported where it is used
    import torch

    class Attention(torch.autograd.Function):
        """What a fused kernel keeps: its inputs and its outputs, not the products of all places with all."""

        @staticmethod
        def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - as PyTorch calls it
            found = torch.empty_like(query.transpose(1, 2))
            ctx.save_for_backward(query, key, value, found)
            return found

        @staticmethod
        def backward(ctx: Any, slopes: torch.Tensor) -> tuple[torch.Tensor, ...]:  # noqa: ANN401 - as PyTorch calls it
            query, key, value, _ = ctx.saved_tensors
            return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)

    return Attention


def _attend(
    module: "torch.nn.Module",
    query: "torch.Tensor",
    key: "torch.Tensor",
    value: "torch.Tensor",
    *others: Any,  # noqa: ANN401 - whatever transformers passes on
    **options: Any,  # noqa: ANN401 - whatever transformers passes on
) -> "tuple[torch.Tensor, None]":
    return _attention().apply(query, key, value), None


def main(
    base: Annotated[Path, typer.Argument(help="Folder with the model's config.json.")],
    *,
    rank: Annotated[int, typer.Option(help="Rank of the adapter.")] = USUAL.rank,
    tokens: Annotated[int, typer.Option(help="Tokens in a batch.")] = USUAL.tokens,
) -> None:
    """Print what tuning a model would take, as JSON."""
    typer.echo(json.dumps(sizes(base, rank=rank, tokens=tokens), indent=1))


if __name__ == "__main__":
    guarded(lambda: typer.run(main))
