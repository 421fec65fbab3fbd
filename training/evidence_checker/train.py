"""Train the evidence checker.

    python -m training.evidence_checker.train DATA --out FOLDER [--minutes 20] [--start FOLDER]

All sets are mixed at random, with new negatives in every epoch. After an interruption, or an end by `--minutes`,
the same command resumes from the last checkpoint and takes the same steps as an uninterrupted run. Writes the weights
(`network.safetensors`) and `report.json`, which contains the metrics on the part `tune` over the tokens.
"""

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.studio.model_server.flags import cpu_features, has_bfloat16
from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.evidence_checker.checker import Floats, Ids
from sleuth.tools.evidence_checker.inputs import Layout
from training.evidence_checker.batches import Row, batches, collate, encode
from training.evidence_checker.examples import Example, by_composition, epoch, with_neighbours
from training.evidence_checker.measure import NEGATIVES, held_out, measure
from training.evidence_checker.model import SHARES, from_pretrained, losses
from training.evidence_checker.sources import MULTI_HOP, Item, of_part, read_items
from training.onnx_export import base_folder

if TYPE_CHECKING:
    from torch.nn import Module

CHECKPOINT, WEIGHTS, REPORT = "checkpoint.pt", "network.safetensors", "report.json"
PROGRESS = "progress.json"
CHECKED, FEW = 300, 80
"""The most examples of a set that the curve is measured on; FEW for each kind of negative, and for multi-hop sets."""
MEASURE_EVERY, SAVE_SECONDS = 1_000_000, 180.0
"""Tokens from one measurement to the next, and seconds from one checkpoint to the next."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Hyperparameters.

    `tokens` are those of the whole training, without padding; `batch` those of a batch, with padding, of which
    `batches_per_step` make a step. The learning rate rises over the share `warm_up` and then falls linearly to 0.
    """

    tokens: int = 16_000_000
    batch: int = 4096
    batches_per_step: int = 1
    rate: float = 1.5e-4
    warm_up: float = 0.03
    weight_decay: float = 0.01
    seed: int = 0

    def rate_at(self, tokens: int) -> float:
        """Return the learning rate after this number of tokens."""
        done = tokens / self.tokens
        return self.rate * max(0.0, min(done / self.warm_up, (1 - done) / (1 - self.warm_up)))


@dataclass(kw_only=True)
class Progress:
    """Position of a training: `epoch`, and `step` within it; `curve` has the metrics on the part `tune`."""

    key: str
    epoch: int = 0
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    losses: list[dict[str, float]] = field(default_factory=list)
    curve: list[dict[str, Any]] = field(default_factory=list)


class Training:
    """The network with its optimizer. On a GPU, and on CPUs with bfloat16 units, products are computed in bfloat16."""

    def __init__(self, network: "Module", plan: Plan) -> None:
        import torch

        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network = network.to(self.device)
        self.plan = plan
        self.bfloat16 = self.device.type == "cuda" or has_bfloat16(cpu_features())
        kinds: tuple[list[Any], list[Any]] = ([], [])
        for weights in network.parameters():
            kinds[weights.dim() > 1].append(weights)
        groups: list[dict[str, Any]] = [{"params": kinds[0], "weight_decay": 0.0}, {"params": kinds[1]}]
        self.optimizer = torch.optim.AdamW(groups, lr=plan.rate, weight_decay=plan.weight_decay)

    def step(self, step: Sequence[Sequence[Row]], progress: Progress) -> dict[str, float]:
        """Train on the batches of one step; return the parts of the loss."""
        import torch

        # Dropout follows from the position, so that a resumed training takes the same steps.
        torch.manual_seed(self.plan.seed * 1_000_003 + progress.epoch * 100_003 + progress.step)
        for group in self.optimizer.param_groups:
            group["lr"] = self.plan.rate_at(progress.tokens)
        self.network.train()
        rows = sum(map(len, step))
        found: dict[str, float] = {}
        for part in step:
            batch = collate(part).to(self.device)
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bfloat16):
                outputs = self.network(batch.ids, batch.mask.long(), batch.types)
            parts = losses(outputs, batch)
            share = len(part) / rows
            total = torch.stack([SHARES[name] * loss for name, loss in parts.items()]).sum() * share
            total.backward()  # type: ignore[no-untyped-call]
            for name, loss in parts.items():
                found[name] = found.get(name, 0.0) + loss.item() * share
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return found

    def run(self, ids: Ids, mask: Ids, types: Ids) -> tuple[Floats, Floats]:
        """Return the logits of a batch, as the reader calls the network."""
        import torch

        self.network.eval()
        with torch.no_grad(), torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bfloat16):
            tokens, whole = self.network(*(torch.from_numpy(each).to(self.device) for each in (ids, mask, types)))
        return tokens.cpu().numpy(), whole.cpu().numpy()

    def save(self, folder: Path, progress: Progress) -> None:
        """Write a checkpoint atomically, and the progress as JSON for readers."""
        import torch

        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{CHECKPOINT}.new"
        state = {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save({"progress": asdict(progress), **state}, fresh)
        fresh.replace(folder / CHECKPOINT)
        (folder / PROGRESS).write_text(json.dumps(asdict(progress), indent=1) + "\n", encoding="utf-8")

    def load(self, folder: Path, key: str) -> Progress:
        """Restore the checkpoint of a folder; raises UsageError for one of another training."""
        import torch

        kept = torch.load(folder / CHECKPOINT, map_location=self.device, weights_only=True)
        progress = Progress(**kept["progress"])
        if progress.key != key:
            raise UsageError(f"The checkpoint in {folder} is of another training: choose another folder with --out.")
        self.network.load_state_dict(kept["network"])
        self.optimizer.load_state_dict(kept["optimizer"])
        return progress


def steps_of(items: Sequence[Item], layout: Layout, plan: Plan, number: int) -> list[list[list[Row]]]:
    """Return the steps of an epoch, each a list of batches."""
    seed = plan.seed + 1000 * number
    rows = [encode(example, layout) for example in epoch(items, seed)]
    found = batches(rows, tokens=plan.batch, seed=seed)
    return [found[at : at + plan.batches_per_step] for at in range(0, len(found), plan.batches_per_step)]


def learn(
    training: Training,
    items: Sequence[Item],
    checked: Sequence[Example],
    layout: Layout,
    *,
    out: Path,
    key: str,
    minutes: float,
) -> tuple[Progress, bool]:
    """Take the steps that are left, or those that begin in time; return the progress, and whether all were taken."""
    plan = training.plan
    progress = training.load(out, key) if (out / CHECKPOINT).is_file() else Progress(key=key)
    saved, end = time.monotonic(), time.monotonic() + 60 * minutes
    for step in _steps_left(items, layout, plan, progress):
        begun, used = time.monotonic(), time.process_time()
        found = training.step(step, progress)
        progress.step += 1
        progress.tokens += sum(len(row.window.ids) for batch in step for row in batch)
        progress.seconds += time.monotonic() - begun
        progress.cpu_seconds += time.process_time() - used
        progress.losses.append({"tokens": progress.tokens, **{name: round(loss, 4) for name, loss in found.items()}})
        if progress.step % 20 == 0:
            _report_progress(plan, progress)
        measured = progress.curve[-1]["tokens"] if progress.curve else 0
        if progress.tokens - measured >= MEASURE_EVERY or progress.tokens >= plan.tokens:
            progress.curve.append(
                {"tokens": progress.tokens, **measure(EvidenceChecker(layout, training.run), checked)}
            )
        if time.monotonic() - saved > SAVE_SECONDS:
            training.save(out, progress)
            saved = time.monotonic()
        if time.monotonic() > end:
            break
    training.save(out, progress)
    return progress, progress.tokens >= plan.tokens


def _steps_left(items: Sequence[Item], layout: Layout, plan: Plan, progress: Progress) -> Iterator[list[list[Row]]]:
    """Yield steps from the progress on, to the end of the plan."""
    while progress.tokens < plan.tokens:
        for step in steps_of(items, layout, plan, progress.epoch)[progress.step :]:
            if progress.tokens >= plan.tokens:
                return
            yield step
        progress.epoch, progress.step = progress.epoch + 1, 0


def _report_progress(plan: Plan, progress: Progress) -> None:
    recent = progress.losses[-20:]
    parts = ", ".join(
        f"{name} {sum(each[name] for each in recent) / len(recent):.3f}" for name in recent[0] if name != "tokens"
    )
    speed = progress.tokens / progress.seconds
    left = (plan.tokens - progress.tokens) / speed / 60
    sys.stderr.write(
        f"epoch {progress.epoch}, step {progress.step}: {parts}; {speed:.0f} tokens/s, {left:.0f} min left\n"
    )


def train(
    data: Path,
    out: Path,
    plan: Plan,
    *,
    base: Path,
    worlds: Path | None = None,
    start: Path | None = None,
    minutes: float | None = None,
) -> dict[str, Any]:
    """Train, or resume a training; return the report, which is also written at the end.

    Args:
        data: the folder with the training files.
        out: the folder of the checkpoint and the results.
        plan: the hyperparameters.
        base: the folder of the pretrained encoder.
        worlds: a folder of synthetic worlds to learn from, too.
        start: the folder of an earlier training, whose weights this one begins with.
        minutes: stop at a checkpoint after this time; None trains to the end.

    Raises:
        UsageError: files that cannot be used, or a checkpoint of another training.
    """
    import torch
    from safetensors.torch import load_file, save_file

    begun = time.monotonic()
    torch.manual_seed(plan.seed)
    layout = Layout(base / "tokenizer.json")
    items = read_items(data, worlds)
    learned = with_neighbours(of_part(items, "train"))
    checked = _some(held_out(with_neighbours(of_part(items, "tune"))))
    network = from_pretrained(base)
    begin = None
    if start:
        if not (start / WEIGHTS).is_file():
            raise UsageError(f"There is no {WEIGHTS} in {start}: name the folder of a finished training.")
        network.load_state_dict(load_file(start / WEIGHTS))
        begin = sha256((start / WEIGHTS).read_bytes()).hexdigest()
    identity = [asdict(plan), [(item.set, item.id) for item in learned], begin]
    key = sha256(json.dumps(identity).encode()).hexdigest()
    training = Training(network, plan)
    left = math.inf if minutes is None else minutes - (time.monotonic() - begun) / 60
    progress, finished = learn(training, learned, checked, layout, out=out, key=key, minutes=left)
    report = {
        "plan": asdict(plan),
        "finished": finished,
        "items": len(learned),
        "epoch": by_composition(epoch(learned, plan.seed)),
        "tokens": progress.tokens,
        "tokens_per_second": round(progress.tokens / progress.seconds, 1) if progress.seconds else None,
        "tokens_per_cpu_second": round(progress.tokens / progress.cpu_seconds, 1) if progress.cpu_seconds else None,
        "curve": progress.curve,
    }
    save_file(training.network.state_dict(), out / WEIGHTS)
    (out / REPORT).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def _some(examples: Sequence[Example]) -> list[Example]:
    """Return the first examples of each set and composition: measuring them all takes as long as some epochs."""
    found: dict[tuple[str, str], list[Example]] = {}
    for example in examples:
        found.setdefault((example.set, example.made), []).append(example)
    return [
        example
        for (name, made), own in found.items()
        for example in own[: FEW if made in NEGATIVES or name in MULTI_HOP else CHECKED]
    ]


def main(
    data: Annotated[Path, typer.Argument(help="Folder with the training files: train/squad2.jsonl.gz and so on.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the checkpoint, the weights and the report.")],
    base: Annotated[Path | None, typer.Option(help="Folder of the encoder to start from; default: MiniLM.")] = None,
    worlds: Annotated[Path | None, typer.Option(help="Folder of synthetic worlds to learn from, too.")] = None,
    start: Annotated[Path | None, typer.Option(help="Folder of a training to start from; default: none.")] = None,
    tokens: Annotated[int, typer.Option(help="Tokens of the whole training.")] = Plan().tokens,
    rate: Annotated[float, typer.Option(help="The largest learning rate.")] = Plan().rate,
    minutes: Annotated[float | None, typer.Option(help="Stop at a checkpoint after this time.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of torch; default: torch's own.")] = None,
    seed: Annotated[int, typer.Option(help="For the order, the negatives and dropout.")] = Plan().seed,
) -> None:
    """Train the evidence checker, and print the report without the curve as JSON."""
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        import torch

        torch.set_num_threads(threads)
    plan = Plan(tokens=tokens, rate=rate, seed=seed)
    report = train(data, out, plan, base=base or base_folder(), worlds=worlds, start=start, minutes=minutes)
    last = report["curve"][-1:]
    typer.echo(json.dumps({**report, "curve": last}, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
