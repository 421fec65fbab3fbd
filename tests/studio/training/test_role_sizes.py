"""What tuning would take, counted with shapes alone, against models of the same architecture that are really there."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

from sleuth.studio.training.roles.merged import LAYERS
from sleuth.studio.training.roles.sizes import sizes
from sleuth.tools.errors import UsageError

SMALL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 2048,
}  # fmt: skip


def folder(path: Path, **changed: Any) -> Path:
    (path / "config.json").write_text(json.dumps(SMALL | changed))
    return path


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral"])
def test_parameters_are_those_of_a_model_that_is_there(kind: str, tmp_path: Path) -> None:
    base = folder(tmp_path, model_type=kind)
    found = sizes(base, rank=4)
    real = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(base))
    assert found["parameters"] == sum(each.numel() for each in real.parameters())
    tuned = get_peft_model(real, LoraConfig(r=4, target_modules=list(LAYERS), task_type="CAUSAL_LM"))
    assert found["learned"] == sum(each.numel() for each in tuned.parameters() if each.requires_grad)


def test_a_batch_takes_at_least_what_its_layers_must_keep_and_grows_with_its_tokens(tmp_path: Path) -> None:
    base = folder(tmp_path, hidden_size=512, intermediate_size=1024, num_attention_heads=8)
    one, two = (sizes(base, tokens=tokens)["gib"]["one batch"] for tokens in (1600, 3200))
    inputs = 2 * 1600 * (4 * 512 + 3 * 512 + 1024)  # of two layers: attention, feed-forward, and its inner width
    assert one * 2**30 > 2 * inputs
    assert two == pytest.approx(2 * one, rel=0.1)


def test_only_shapes_are_made(tmp_path: Path) -> None:
    base = folder(tmp_path, hidden_size=4096, intermediate_size=14336, num_hidden_layers=2, num_attention_heads=32)
    before = torch.get_default_device()
    assert sizes(base)["gib"]["weights"] > 0.7
    assert torch.get_default_device() == before


def test_a_folder_without_a_model_and_a_model_without_the_layers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no configuration of a model"):
        sizes(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2}))
    with pytest.raises(UsageError, match="cannot be tuned so"):
        sizes(tmp_path)
