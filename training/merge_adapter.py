"""Train an adapter through the merged weights, as they will be served.

peft multiplies with the weights and with the adapter separately, which takes many small products and conversions. Here
the adapter is added to the weights, so that every layer is one product; the gradients of its matrices are computed from
that.
"""

from functools import cache
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from peft import LoraConfig, PeftModel

LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def lora(rank: int) -> "LoraConfig":
    """Return the adapter, as peft makes it."""
    from peft import LoraConfig

    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=list(LAYERS), task_type="CAUSAL_LM")


def merge_while_tuning(model: "PeftModel") -> None:
    """Replace the forward pass of every linear layer with an adapter by one product."""
    from peft.tuners.lora import Linear

    for layer in model.modules():
        if isinstance(layer, Linear):
            layer.forward = MethodType(_forward, layer)  # type: ignore[method-assign]


def _forward(layer: Any, inputs: "torch.Tensor") -> "torch.Tensor":  # noqa: ANN401 - peft's layers are not typed
    (name,) = layer.active_adapters
    down, up = layer.lora_A[name].weight, layer.lora_B[name].weight * layer.scaling[name]
    versions = (layer.lora_A[name].weight._version, layer.lora_B[name].weight._version)
    if getattr(layer, "sleuth_versions", None) != versions:
        weights = layer.base_layer.weight
        layer.sleuth_merged = (weights + up.detach() @ down.detach()).to(weights.dtype)
        layer.sleuth_versions = versions
    outputs: torch.Tensor = _product().apply(inputs, layer.sleuth_merged, down, up)
    bias = layer.base_layer.bias  # Qwen's attention has some
    return outputs if bias is None else outputs + bias


@cache
def _product() -> Any:  # noqa: ANN401 - a class that needs PyTorch, which is imported where it is used
    import torch

    class Product(torch.autograd.Function):
        """Inputs (..., columns) times merged weights (rows, columns), with slopes for the adapter's matrices.

        These are `down` (rank, columns) and `up` (rows, rank), of which the product has been added to the weights.
        """

        @staticmethod
        def forward(
            ctx: Any,  # noqa: ANN401 - as PyTorch calls it
            inputs: torch.Tensor,
            merged: torch.Tensor,
            down: torch.Tensor,
            up: torch.Tensor,
        ) -> torch.Tensor:
            ctx.save_for_backward(inputs, merged, down, up)
            return torch.nn.functional.linear(inputs, merged)

        @staticmethod
        def backward(ctx: Any, slopes: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: ANN401 - as PyTorch calls it
            inputs, merged, down, up = ctx.saved_tensors
            after, before = slopes.reshape(-1, slopes.shape[-1]), inputs.reshape(-1, inputs.shape[-1])
            of_down = (after @ up.to(after.dtype)).T @ before
            of_up = after.T @ (before @ down.to(before.dtype).T)
            of_inputs = slopes @ merged if ctx.needs_input_grad[0] else None
            return of_inputs, None, of_down.to(down.dtype), of_up.to(up.dtype)

    return Product
