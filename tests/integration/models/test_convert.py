"""Conversion of the embedded model: the weights are those that transformers reads from the file."""

from pathlib import Path

import pytest

from sleuth.studio.model_server.convert import ensure_checkpoint, round_weights
from sleuth.studio.model_server.flags import ServeOptions
from sleuth.studio.model_server.models import MODELS
from sleuth.studio.model_server.weights import ensure_weights

pytestmark = [pytest.mark.vllm, pytest.mark.nightly, pytest.mark.usefixtures("vllm_installed")]


@pytest.mark.filterwarnings("ignore")
async def test_converted_weights_are_those_of_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, GgufConfig

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    reported: list[str] = []
    folder = await ensure_checkpoint(tmp_path, ServeOptions(), reported.append)
    assert [line.rpartition(": ")[2] for line in reported[1:]] == [f"{share} %" for share in range(10, 101, 10)]
    converted, weights = load_file(folder / "model.safetensors"), await ensure_weights(MODELS["tiny"], tmp_path, print)
    read = AutoModelForCausalLM.from_pretrained(
        weights.parent, gguf_file=weights.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    expected = {name: tensor for name, tensor in read.state_dict().items() if name != "lm_head.weight"}  # it is tied
    assert converted.keys() == expected.keys()
    assert all(torch.equal(converted[name], tensor) for name, tensor in expected.items())


@pytest.mark.filterwarnings("ignore")
def test_linear_layers_are_rounded_per_output() -> None:
    import torch

    layer = "model.layers.0.mlp.up_proj.weight"
    whole = {layer: torch.tensor([[1.0, -0.5], [100.0, 0.0]]), "model.norm.weight": torch.tensor([0.3])}
    rounded = round_weights(whole)
    assert rounded.keys() == {*whole, f"{layer}_scale"}
    assert rounded[layer].tolist() == [[127, -64], [127, 0]]
    assert rounded[f"{layer}_scale"].flatten().tolist() == pytest.approx([1 / 127, 100 / 127], rel=0.01)
    assert rounded["model.norm.weight"] is whole["model.norm.weight"]
