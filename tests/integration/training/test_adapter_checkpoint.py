"""An adapter of the embedded model in the weights of a checkpoint of its own."""

import json
from pathlib import Path

import pytest
from vllm_fixture import TEST_HOME

from sleuth.studio.model_server.adapter import CONFIG, WEIGHTS
from sleuth.studio.model_server.convert import ensure_checkpoint
from sleuth.studio.model_server.flags import ServeOptions

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("vllm_installed")]

LAYER = "model.layers.3.self_attn.q_proj"
RANK, HIDDEN = 2, 576


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """One that adds 2 to every weight of a layer."""
    import torch
    from safetensors.torch import save_file

    matrices = {"lora_A": torch.ones(RANK, HIDDEN), "lora_B": torch.full((HIDDEN, RANK), 0.5)}
    save_file({f"base_model.model.{LAYER}.{name}.weight": each for name, each in matrices.items()}, tmp_path / WEIGHTS)
    (tmp_path / CONFIG).write_text(json.dumps({"r": RANK, "lora_alpha": 2 * RANK}))
    return tmp_path


@pytest.mark.nightly
async def test_an_adapter_is_in_the_weights_of_its_checkpoint_and_nowhere_else(adapter: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    with_adapter = ServeOptions(adapter=str(adapter))
    bare = load_file(await ensure_checkpoint(TEST_HOME, ServeOptions()) / "model.safetensors")
    folder = await ensure_checkpoint(tmp_path / "home", with_adapter)
    tuned = load_file(folder / "model.safetensors")
    changed = {name for name in bare if not bare[name].equal(tuned[name])}
    assert folder.name == "sleuth-small"
    assert changed == {f"{LAYER}.weight"}
    assert (tuned[f"{LAYER}.weight"].float() - bare[f"{LAYER}.weight"].float() - 2).abs().max() < 0.02
    assert with_adapter.is_converted(tmp_path / "home")
    assert not ServeOptions().is_converted(tmp_path / "home")
