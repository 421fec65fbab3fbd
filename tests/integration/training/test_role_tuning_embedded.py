"""The embedded model itself, tuned on a sixtieth of what its adapter has learned from."""

import asyncio
from pathlib import Path

import pytest
from vllm_fixture import TEST_HOME

from sleuth.studio.model_server.convert import Checkpoint, ensure_checkpoint
from training.roles.data.examples import Given, make
from training.roles.data.mix import BUDGET
from training.roles.tuning.batches import Plan
from training.roles.tuning.tune import tune

DATA = Path(__file__).parents[4] / "shared" / "data"
pytestmark = [
    pytest.mark.integration,
    pytest.mark.vllm,
    pytest.mark.faults,  # trains for some minutes
    pytest.mark.usefixtures("vllm_installed"),
    pytest.mark.skipif(not DATA.is_dir(), reason="no training questions beside the checkout"),
]


def test_training_on_few_examples_improves_held_out_replies(tmp_path: Path) -> None:
    questions = Given(questions=[DATA / "musique" / "train.jsonl.gz"])
    card = asyncio.run(make(questions, tmp_path / "examples", limit=100, budget=BUDGET / 60, seed=0))
    base = asyncio.run(ensure_checkpoint(TEST_HOME, Checkpoint("tiny")))
    examples = tmp_path / "examples" / "examples.jsonl"
    report = tune(examples, base, tmp_path / "adapter", Plan(tokens=800, batches_per_step=1, warm_up=2))
    assert sum(line["examples"] for line in card["examples"].values()) > 20
    before, after = report["before"], report["after"]
    assert before.keys() == after.keys() != set()
    for metric, better in (("loss", -1), ("tokens_right", 1)):
        gained = [better * (after[prompt][metric] - before[prompt][metric]) for prompt in before]
        assert sum(gained) > 0
