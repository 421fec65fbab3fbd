"""One command makes everything trained that comes with the package; an adapter is in the weights of its checkpoint."""

import asyncio
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from vllm_fixture import TEST_HOME

from sleuth.studio.model_server.adapter import CONFIG, WEIGHTS
from sleuth.studio.model_server.convert import ensure_checkpoint
from sleuth.studio.model_server.flags import ServeOptions
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker

SCRIPT = Path(__file__).parents[3] / "training" / "artefacts.sh"
DATA = Path(__file__).parents[4] / "shared" / "data"
"""The training files next to the checkout."""
FERRY = Evidence(title="Ferry", text="The ferry was built by Oda Brask in 1911.")


def some_of(folder: Path, one_of: int) -> Path:
    """Copy some lines of each training file, and the whole corpus that claims refer to."""
    for file in (*DATA.glob("train/*.gz"), *DATA.glob("[2hms]*/[tdo]*.gz"), *DATA.glob("scifact/*.gz")):
        rows = gzip.decompress(file.read_bytes()).splitlines()
        copy = folder / file.relative_to(DATA)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(gzip.compress(b"\n".join(rows[:: 1 if file.name.startswith("corpus") else one_of])))
    return folder


@pytest.mark.vllm
@pytest.mark.usefixtures("vllm_installed")
@pytest.mark.skipif(not (DATA / "train").is_dir(), reason="no training files next to the checkout")
@pytest.mark.faults  # seven minutes of processor time
@pytest.mark.timeout(2400)
def test_a_hundredth_of_the_training_makes_every_artefact(tmp_path: Path) -> None:
    data, out = some_of(tmp_path / "data", 20), tmp_path / "out"
    base = asyncio.run(ensure_checkpoint(TEST_HOME, ServeOptions()))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [SCRIPT, data, base, out, "1"]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert EvidenceChecker.load(out / "checker").read("Who built the ferry?", [FERRY]).spans
    for name in ("checker", "ranker", "svm"):
        assert json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    assert {"ranker.npz", "svm.npz"} <= {file.name for file in out.iterdir()}
    assert (out / "adapter" / "adapter_model.safetensors").stat().st_size < 16e6


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
    assert folder.name == "tiny-tuned"
    assert changed == {f"{LAYER}.weight"}
    assert (tuned[f"{LAYER}.weight"].float() - bare[f"{LAYER}.weight"].float() - 2).abs().max() < 0.02
    assert with_adapter.is_converted(tmp_path / "home")
    assert not ServeOptions().is_converted(tmp_path / "home")
