"""Causal attention for tuning on processors: by blocks of queries, each with the keys before it.

The fused kernels of PyTorch take nearly half of a step there; plain products of blocks take a third of their time, and
those of grouped queries need no copies of their keys.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

NAME = "sleuth-blocks"
BLOCK = 128
"""Queries at a time: what a block needs stays in a processor's cache."""


def attention_on(device: str) -> str:
    """Return the name of the attention implementation for a device; on CPUs it is this module's."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _attend)
    return NAME if device == "cpu" else "sdpa"


def _attend(
    module: "torch.nn.Module",
    query: "torch.Tensor",
    key: "torch.Tensor",
    value: "torch.Tensor",
    attention_mask: "torch.Tensor | None",
    **options: Any,  # noqa: ANN401 - further options of transformers
) -> "tuple[torch.Tensor, None]":
    """Adapt `blocked` to transformers: query (rows, heads, length, size), key and value (rows, fewer heads, length,
    size).
    """
    return blocked(query, key, value, scale=options["scaling"]).transpose(1, 2).contiguous(), None


def blocked(query: "torch.Tensor", key: "torch.Tensor", value: "torch.Tensor", *, scale: float) -> "torch.Tensor":
    """Return causal softmax attention, in the query's shape.

    Rows are padded at their end only: no position attends to later ones.
    """
    import torch

    rows, heads, length, size = query.shape
    kept = key.shape[1]
    grouped = query.reshape(rows * kept, heads // kept, length, size)
    keys = key.reshape(rows * kept, length, size).transpose(1, 2)
    values = value.reshape(rows * kept, length, size)
    found = []
    for begin in range(0, length, BLOCK):
        end = min(length, begin + BLOCK)
        asked = grouped[:, :, begin:end].reshape(rows * kept, -1, size)
        later = query.new_full((end - begin, end), -torch.inf).triu(begin + 1).repeat(heads // kept, 1)
        weights = torch.baddbmm(later.expand(rows * kept, -1, -1), asked, keys[:, :, :end], alpha=scale).softmax(-1)
        found.append(torch.bmm(weights, values[:, :end]).view(rows * kept, heads // kept, end - begin, size))
    return torch.cat(found, 2).view(rows, heads, length, size)
