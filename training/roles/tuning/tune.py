"""Tune a small model for all roles.

python -m training.roles.tuning.tune EXAMPLES --base MODEL --out ADAPTER

LoRA, all roles mixed at random, loss on the replies only. After an interruption it resumes from its last checkpoint,
which is stored next to the adapter until the end, and produces the same adapter.
"""

import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.studio.model_server.adapter import CONFIG, WEIGHTS, fingerprint, resolve_adapter
from sleuth.tools.errors import UsageError
from training.merge_adapter import lora, merge_while_tuning
from training.roles.tuning.attention import attention_on
from training.roles.tuning.batches import (
    IGNORED,
    USUAL,
    Plan,
    Row,
    pad_batch,
    read_examples,
    tokenize_examples,
)

if TYPE_CHECKING:
    import torch

CHECKPOINT = "checkpoint.pt"
CHECKED = 120
"""The most held-out examples that the losses before and after are of: each costs as long as a step of its own."""


class Tuning:
    """A model with its adapter, and the optimizer that tunes it."""

    def __init__(self, base: Path, plan: Plan, start: Path | None = None) -> None:
        import torch
        from peft import get_peft_model, load_peft_weights, set_peft_model_state_dict
        from transformers import AutoModelForCausalLM

        torch.manual_seed(plan.seed)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        kind: Any = AutoModelForCausalLM
        attention = attention_on(self.device.type)
        bare = kind.from_pretrained(
            base, local_files_only=True, dtype=torch.bfloat16, attn_implementation=attention
        ).to(self.device)
        self.model: Any = get_peft_model(bare, lora(plan.rank))
        if start:
            set_peft_model_state_dict(self.model, load_peft_weights(str(start), device=self.device.type))
        if self.device.type == "cpu":
            merge_while_tuning(self.model)
        self.plan = plan
        # The adapter is kept in float32: its steps are too small for bfloat16.
        self.learned = [each for each in self.model.parameters() if each.requires_grad]
        self.optimizer = torch.optim.AdamW(self.learned, lr=plan.rate, weight_decay=0.0)

    def step(self, step: Sequence[Sequence[Row]], rate: float) -> float:
        """Train on one step's batches; return the loss, weighted as in `weighed`."""
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = rate
        whole = sum(math.sqrt(row.learned) for batch in step for row in batch)
        total = 0.0
        for batch in step:
            loss = self.weighed(batch) / whole
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(self.learned, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total

    def weighed(self, batch: Sequence[Row]) -> "torch.Tensor":
        """Return the sum of the examples' losses, weighed by the root of their length.

        By tokens alone long replies, such as lists of triples, would drown a yes or no; by examples alone it would
        be the other way round.
        """
        from torch.nn.functional import cross_entropy

        logits, labels = self.logits(batch)
        losses = cross_entropy(logits.float(), labels, reduction="none")
        weights = [each for row in batch for each in row.weights(self.plan.answer, self.plan.verdict)]
        return (losses * losses.new_tensor(weights)).sum()

    def logits(self, batch: Sequence[Row]) -> "tuple[torch.Tensor, torch.Tensor]":
        """Return the logits at positions with a label, and the labels; computing the others would be wasteful."""
        ids, labels = (each.to(self.device) for each in pad_batch(batch))
        wanted = labels[:, 1:] != IGNORED
        model = self.model.get_base_model()
        hidden = model.model(input_ids=ids, use_cache=False)[0]
        logits = model.lm_head(hidden[:, :-1][wanted])
        return logits, labels[:, 1:][wanted]

    def save(self, file: Path, progress: "Progress") -> None:
        """Write a checkpoint atomically."""
        import torch

        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        torch.save({"progress": asdict(progress), **self.state()}, fresh)
        fresh.replace(file)

    def state(self) -> dict[str, Any]:
        """Return the state that changes during training."""
        from peft import get_peft_model_state_dict

        return {"adapter": get_peft_model_state_dict(self.model), "optimizer": self.optimizer.state_dict()}

    def load(self, file: Path, key: str) -> "Progress":
        """Return the state of a checkpoint; raises UsageError for one of another tuning."""
        import torch

        kept = torch.load(file, map_location=self.device, weights_only=True)
        progress = Progress(**kept["progress"])
        if progress.key != key:
            raise UsageError(f"{file} is of another tuning: remove it, or choose another folder with --out.")
        self.restore(kept)
        return progress

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Restore a `state`."""
        from peft import set_peft_model_state_dict

        set_peft_model_state_dict(self.model, kept["adapter"])
        self.optimizer.load_state_dict(kept["optimizer"])

    def finish(self, folder: Path) -> None:
        """Write the adapter in bfloat16, as it is merged or served."""
        for each in self.model.parameters():
            if each.requires_grad:
                each.data = each.data.bfloat16()
        self.model.save_pretrained(str(folder))
        made = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        made["base_model_name_or_path"] = Path(made["base_model_name_or_path"]).name  # wherever it lay
        (folder / CONFIG).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
        (folder / WEIGHTS).chmod(0o644)


@dataclass(kw_only=True)
class Progress:
    """Progress of a tuning; `key` identifies its examples and its plan."""

    key: str
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    losses: list[float]


def validate(tuning: Tuning, rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return, by prompt, the loss per token, and the shares of tokens and of whole replies that are most likely."""
    import torch

    found: dict[str, list[tuple[float, float, bool]]] = defaultdict(list)
    for row in rows:
        with torch.no_grad():
            logits, labels = tuning.logits([row])
            loss = torch.nn.functional.cross_entropy(logits.float(), labels).item()
            right = logits.argmax(-1) == labels
        found[row.prompt].append((loss, right.float().mean().item(), bool(right.all())))
    return {
        prompt: {
            "examples": len(own),
            "loss": round(sum(loss for loss, _, _ in own) / len(own), 4),
            "tokens_right": round(sum(right for _, right, _ in own) / len(own), 4),
            "exact": round(sum(exact for _, _, exact in own) / len(own), 4),
        }
        for prompt, own in sorted(found.items())
    }


def learn(
    tuning: Tuning, steps: Sequence[Sequence[Sequence[Row]]], file: Path, key: str, *, minutes: float = math.inf
) -> Progress:
    """Take the steps that are left, or those that begin within a time; print every tenth on standard error."""
    progress = tuning.load(file, key) if file.is_file() else Progress(key=key, losses=[])
    end = time.monotonic() + minutes * 60
    for at in range(progress.step, len(steps)):
        begun = time.monotonic()
        if begun > end:
            tuning.save(file, progress)
            break
        progress.losses.append(round(tuning.step(steps[at], tuning.plan.rate_at(at, len(steps))), 4))
        progress.step = at + 1
        progress.tokens += sum(len(row.ids) for batch in steps[at] for row in batch)
        progress.seconds += time.monotonic() - begun
        if progress.step % 10 == 0:
            speed, left = progress.tokens / progress.seconds, progress.seconds / progress.step * (len(steps) - at - 1)
            line = f"step {progress.step} of {len(steps)}: loss {progress.losses[-1]:.3f}, {speed:.0f} tokens/s, "
            sys.stderr.write(f"{line}{left / 60:.0f} min left\n")
        if progress.step % tuning.plan.save_every == 0:
            tuning.save(file, progress)
    return progress


def tune(
    examples: Path,
    base: Path,
    out: Path,
    plan: Plan,
    *,
    prompts: Sequence[str] = (),
    limit: int | None = None,
    start: Path | None = None,
    minutes: float = math.inf,
) -> dict[str, Any]:
    """Write the adapter and a report; return the report: losses on the held-out replies before and after.

    Args:
        examples: the examples to train on and to validate with.
        base: the model's folder.
        out: the adapter's folder.
        plan: the hyperparameters.
        prompts: the prompts to learn, such as `extractor/extract`; without any, all.
        limit: the most examples to train on, and to validate with.
        start: the folder of an adapter of the same rank to continue from; None starts with one that changes nothing.
        minutes: after this time the adapter is written as it is, and the checkpoint remains.

    Raises:
        UsageError: examples that cannot be read, a start that is no such adapter, a checkpoint of another tuning.
    """
    from transformers import AutoTokenizer

    learned, held_out = read_examples(examples, prompts)
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    rows, checked = (
        tokenize_examples(learned[:limit], tokenizer),
        tokenize_examples(held_out[:CHECKED][:limit], tokenizer),
    )
    if start and resolve_adapter(str(start)):
        rank = int(json.loads((start / CONFIG).read_text(encoding="utf-8"))["r"])
        if rank != plan.rank:
            raise UsageError(f"The adapter in {start} has rank {rank}: continue from it with --rank {rank}.")
    marks = [fingerprint(start)] if start else []
    return run_tuning(Tuning(base, plan, start), rows, checked, out, *marks, minutes=minutes)


def run_tuning(
    tuning: Tuning, rows: Sequence[Row], checked: Sequence[Row], out: Path, *marks: str, minutes: float = math.inf
) -> dict[str, Any]:
    """Run `tune` with an existing tuning; `marks` distinguish its checkpoints from those of another kind."""
    plan = tuning.plan
    key = sha256(json.dumps([asdict(plan), [row.ids for row in rows], *marks]).encode()).hexdigest()
    before = validate(tuning, checked)
    steps = plan.steps(rows)
    progress = learn(tuning, steps, out / CHECKPOINT, key, minutes=minutes)
    tuning.finish(out)
    report = {
        "plan": asdict(plan),
        "marks": marks,
        "examples": len(rows),
        "steps": [progress.step, len(steps)],
        "tokens": progress.tokens,
        "learned_tokens": sum(row.learned for row in rows),
        "tokens_per_second": round(progress.tokens / progress.seconds, 1) if progress.seconds else None,
        "loss": progress.losses,
        "before": before,
        "after": validate(tuning, checked),
    }
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if progress.step == len(steps):
        (out / CHECKPOINT).unlink(missing_ok=True)
    return report


def main(
    examples: Annotated[Path, typer.Argument(help="`examples.jsonl`, as roles.data.examples has made it.")],
    *,
    base: Annotated[Path, typer.Option(help="Folder of the model to tune: `SLEUTH_HOME/models/...`.")],
    out: Annotated[Path, typer.Option(help="The adapter's folder; a checkpoint is kept in it until the end.")],
    limit: Annotated[int | None, typer.Option(help="Examples to learn from; default: all.")] = None,
    size: Annotated[int, typer.Option("--rank", help="Rank of the adapter.")] = USUAL.rank,
    rate: Annotated[float, typer.Option(help="The largest step size.")] = USUAL.rate,
    answer: Annotated[float, typer.Option(help="The least share of a reply's weight for its answer.")] = USUAL.answer,
    verdict: Annotated[float, typer.Option(help="The least share of its weight for a verdict.")] = USUAL.verdict,
    tokens: Annotated[int, typer.Option(help="Tokens in a batch.")] = USUAL.tokens,
    batches: Annotated[int, typer.Option(help="Batches that make a step.")] = USUAL.batches_per_step,
    epochs: Annotated[int, typer.Option(help="Times over all examples.")] = USUAL.epochs,
    prompts: Annotated[
        list[str] | None,
        typer.Option("--prompt", help="Learn only this prompt, such as `extractor/extract`; repeatable."),
    ] = None,
    start: Annotated[Path | None, typer.Option(help="Folder of an adapter to continue from.")] = None,
    minutes: Annotated[
        float, typer.Option(help="End after this time; rerun the command to continue.", show_default="no limit")
    ] = math.inf,
    seed: Annotated[int, typer.Option(help="For the order of examples, and the adapter's first weights.")] = USUAL.seed,
) -> None:
    """Tune a model on examples, and print what came of it as JSON."""
    plan = Plan(
        rank=size,
        tokens=tokens,
        batches_per_step=batches,
        epochs=epochs,
        rate=rate,
        answer=answer,
        verdict=verdict,
        seed=seed,
    )
    report = tune(examples, base, out, plan, prompts=prompts or (), limit=limit, start=start, minutes=minutes)
    typer.echo(json.dumps(report, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
