import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from training.roles.tuning.reduce_rank import reduce_rank


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """An adapter of rank 8 with a product of rank 4."""
    torch.manual_seed(0)
    mixed = torch.randn(8, 4)
    save_file(
        {"layer.lora_A.weight": mixed @ torch.randn(4, 32), "layer.lora_B.weight": torch.randn(24, 8)},
        tmp_path / "adapter_model.safetensors",
    )
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": 8, "lora_alpha": 16, "peft_type": "LORA"}))
    return tmp_path


def product(folder: Path) -> torch.Tensor:
    weights = load_file(folder / "adapter_model.safetensors")
    config = json.loads((folder / "adapter_config.json").read_text())
    up, down = weights["layer.lora_B.weight"].float(), weights["layer.lora_A.weight"].float()
    return up @ down * (config["lora_alpha"] / config["r"])


def test_enough_rank_keeps_the_product(adapter: Path, tmp_path: Path) -> None:
    assert reduce_rank(adapter, tmp_path / "out", 4) < 1e-6
    assert torch.allclose(product(tmp_path / "out"), product(adapter), rtol=0.02, atol=1.0)
    assert json.loads((tmp_path / "out" / "adapter_config.json").read_text())["r"] == 4


def test_less_rank_leaves_out_the_reported_share(adapter: Path, tmp_path: Path) -> None:
    share = reduce_rank(adapter, tmp_path / "out", 2)
    lost = (product(tmp_path / "out") - product(adapter)).square().sum() / product(adapter).square().sum()
    assert share == pytest.approx(float(lost), abs=0.01)
    assert 0.05 < share < 0.95
