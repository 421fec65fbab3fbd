"""The mean of two small adapters, and what has none."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from sleuth.studio.model_server.adapter import CONFIG, WEIGHTS
from sleuth.studio.training.roles.tuning.average import average
from sleuth.tools.errors import UsageError


def adapter(folder: Path, value: float, *, rank: int = 2) -> Path:
    folder.mkdir()
    (folder / CONFIG).write_text(json.dumps({"r": rank}))
    save_file({"up": torch.full((3, rank), value, dtype=torch.bfloat16)}, folder / WEIGHTS)
    return folder


def test_every_weight_is_the_mean(tmp_path: Path) -> None:
    average([adapter(tmp_path / "a", 1.0), adapter(tmp_path / "b", 4.0)], tmp_path / "mean")
    (weight,) = load_file(tmp_path / "mean" / WEIGHTS).values()
    assert weight.dtype == torch.bfloat16
    assert weight.tolist() == [[2.5, 2.5]] * 3
    assert json.loads((tmp_path / "mean" / CONFIG).read_text()) == {"r": 2}


def test_of_two_ranks_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="of one model and one rank"):
        average([adapter(tmp_path / "a", 1.0), adapter(tmp_path / "b", 1.0, rank=4)], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_a_folder_without_an_adapter_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no LoRA adapter"):
        average([adapter(tmp_path / "a", 1.0), tmp_path / "b"], tmp_path / "mean")
