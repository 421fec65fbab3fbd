"""Tuning a tiny model: the loss falls, a kill costs little, and the adapter is what peft reads."""

import json
import os
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from preloaded import child
from tiny_model import write_tiny_model

from sleuth.studio.model_server.adapter import merge
from training.roles.tuning.batches import Plan, Row
from training.roles.tuning.tune import Tuning, learn, tune

pytestmark = pytest.mark.nightly

PLAN = Plan(rank=4, tokens=60, batches_per_step=1, warm_up=2, rate=0.02, save_every=2)
ROWS = [Row(prompt="p", ids=[1 + at % 40, *range(60, 60 + 5 * (1 + at % 4))], learned=4) for at in range(60)]
KEY = "k"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


def weights(tuning: Tuning) -> dict[str, Any]:
    return {name: each.tolist() for name, each in tuning.model.named_parameters() if each.requires_grad}


class Deadly(list[Sequence[Sequence[Row]]]):
    """Steps of which the seventh is never taken."""

    def __getitem__(self, at: Any) -> Any:
        if at == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(at)


def learn_until_killed(job: tuple[Path, Path], _pipe: Connection) -> None:
    base, file = job
    learn(Tuning(base, PLAN), Deadly(PLAN.steps(ROWS)), file, KEY)


def test_killed_training_resumes_to_the_same_result(base: Path, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.pt"
    with child(learn_until_killed, (base, file)) as (process, _):
        process.join()
        assert process.exitcode == -signal.SIGKILL
    resumed, whole = Tuning(base, PLAN), Tuning(base, PLAN)
    after_six = resumed.load(file, KEY)
    assert (after_six.step, len(after_six.losses)) == (6, 6)
    again = learn(resumed, PLAN.steps(ROWS), file, KEY)
    once = learn(whole, PLAN.steps(ROWS), tmp_path / "other.pt", KEY)
    assert again.losses == once.losses
    assert weights(resumed) == weights(whole)


def test_tuning_starts_from_an_adapter(base: Path, examples: Path, tmp_path: Path) -> None:
    once = tune(examples, base, tmp_path / "one", PLAN, limit=40)
    on = tune(examples, base, tmp_path / "two", PLAN, limit=40, start=tmp_path / "one")
    learned, begun = once["after"]["reader/read"]["loss"], on["before"]["reader/read"]["loss"]
    assert begun == pytest.approx(learned, abs=0.02)
    assert (len(once["marks"]), len(on["marks"])) == (0, 1)


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """Replies that begin as the question ends: of some questions "yes", of others "no"."""
    rows = [
        {
            "question": str(at),
            "prompt": "reader/read",
            "messages": [{"role": "user", "content": f"{at}: {word}?"}],
            "reply": word,
        }
        for at in range(200)
        for word in ("yes" if at % 2 else "no",)
    ]
    (tmp_path / "examples.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "examples.jsonl"


def test_loss_falls_and_held_out_replies_improve(base: Path, examples: Path, tmp_path: Path) -> None:
    plan = Plan(rank=16, tokens=400, batches_per_step=1, rate=0.02, epochs=3)
    report = tune(examples, base, tmp_path / "adapter", plan)
    before, after = report["before"]["reader/read"], report["after"]["reader/read"]
    assert report["loss"][-1] < report["loss"][0] / 2
    assert after["loss"] < before["loss"] / 2
    assert after["exact"] >= before["exact"]
    assert not (tmp_path / "adapter" / "checkpoint.pt").exists()
    made = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert made["base_model_name_or_path"] == base.name


def test_merged_adapter_equals_the_separate_adapter(base: Path, examples: Path, tmp_path: Path) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    tune(examples, base, tmp_path / "adapter", PLAN, limit=20)
    bare = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    ids = torch.tensor([[5, 6, 7, 8]])
    without = bare(input_ids=ids).logits
    beside = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), tmp_path / "adapter"
    )(input_ids=ids).logits
    merge(bare.state_dict(), tmp_path / "adapter")
    assert torch.allclose(bare(input_ids=ids).logits, beside, atol=1e-3)
    assert (beside - without).abs().max() > 0.1
