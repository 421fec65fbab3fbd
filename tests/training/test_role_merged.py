"""Layers tuned through merged weights give and learn what peft's own layers do."""

import copy
from typing import Any

import torch

from training.merge_adapter import merge_while_tuning


class Two(torch.nn.Module):
    """Two layers, the second of which has slopes to pass on."""

    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Linear(6, 5, bias=False)
        self.other = torch.nn.Linear(5, 3)  # with a bias, as in the attention of Qwen

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.other(torch.tanh(self.one(inputs)))  # type: ignore[no-any-return]


def pair() -> tuple[Any, Any]:
    """A model with an adapter that does something already, as peft computes it, and merged."""
    from peft import LoraConfig, get_peft_model  # takes seconds

    torch.manual_seed(0)
    kept = get_peft_model(Two(), LoraConfig(r=2, lora_alpha=4, target_modules=["one", "other"]))  # type: ignore[arg-type]
    for name, each in kept.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(each)
    merged = copy.deepcopy(kept)
    merge_while_tuning(merged)
    return kept, merged


def learned(model: Any) -> list[torch.Tensor]:
    return [each for each in model.parameters() if each.requires_grad]


def test_outputs_and_steps_are_those_of_peft() -> None:
    kept, merged = pair()
    inputs, wanted = torch.randn(4, 7, 6), torch.randn(4, 7, 3)
    optimizers = [torch.optim.SGD(learned(model), lr=0.1) for model in (kept, merged)]
    for _ in range(3):
        for model, optimizer in zip((kept, merged), optimizers, strict=True):
            optimizer.zero_grad()
            (model(inputs) - wanted).square().mean().backward()
            optimizer.step()
        torch.testing.assert_close(merged(inputs), kept(inputs), atol=1e-4, rtol=1e-4)
    for one, other in zip(learned(kept), learned(merged), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
