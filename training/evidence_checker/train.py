"""Train the evidence checker.

    python -m training.evidence_checker.train DATA --out FOLDER [--minutes 20] [--start FOLDER]

All sets are mixed at random, with new negatives in every epoch. After an interruption, or an end by `--minutes`,
the same command resumes from the last checkpoint and takes the same steps as an uninterrupted run. The folder gets the
checkpoint with the weights that are trained, the encoded examples of the epoch, and `progress.json` with the losses.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.studio.model_server.flags import cpu_features, has_bfloat16
from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker.inputs import Layout
from training.evidence_checker.batches import PIECE, Row, batches, collate, encode, load_rows, save_rows
from training.evidence_checker.examples import by_composition, epoch, with_neighbors
from training.evidence_checker.model import SHARES, from_pretrained, losses, restore, trained
from training.evidence_checker.sources import Item, of_part, read_comparisons, read_items
from training.onnx_export import base_folder

if TYPE_CHECKING:
    from torch.nn import Module

CHECKPOINT, PROGRESS = "checkpoint.pt", "progress.json"
SAVE_SECONDS = 180.0
"""Seconds from one checkpoint to the next."""
MAY_CHANGE = ("tokens", "decay")
"""Hyperparameters that may differ when a training is resumed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Hyperparameters.

    `tokens` are those of the whole training, without padding; `batch` those of a batch, with padding, of which
    `batches_per_step` make a step. The learning rate rises over the share `warm_up`, and falls linearly to 0 over the
    last share `decay`. `rank` is that of the adapters; 0 trains all weights.
    """

    tokens: int = 16_000_000
    batch: int = 4096
    batches_per_step: int = 1
    rate: float = 1.5e-4
    warm_up: float = 0.03
    decay: float = 0.97
    rank: int = 0
    weight_decay: float = 0.01
    seed: int = 0

    def rate_at(self, tokens: int) -> float:
        """Return the learning rate after this number of tokens."""
        done = tokens / self.tokens
        return self.rate * max(0.0, min(1.0, done / self.warm_up, (1 - done) / self.decay))


@dataclass(kw_only=True)
class Progress:
    """Position of a training: `epoch`, and `step` within it; `losses` has the parts of the loss of every step."""

    key: str
    epoch: int = 0
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    losses: list[dict[str, float]] = field(default_factory=list)


class Training:
    """The network with its optimizer. On a GPU, and on CPUs with bfloat16 units, products are computed in bfloat16.

    With adapters, the weights themselves are.
    """

    def __init__(self, network: "Module", plan: Plan) -> None:
        import torch

        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network = network.to(self.device)
        self.plan = plan
        self.bfloat16 = not plan.rank and (self.device.type == "cuda" or has_bfloat16(cpu_features()))
        kinds: tuple[list[Any], list[Any]] = ([], [])
        for weights in filter(lambda each: each.requires_grad, network.parameters()):
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

    def save(self, folder: Path, progress: Progress) -> None:
        """Write a checkpoint atomically, and the progress as JSON for readers."""
        import torch

        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{CHECKPOINT}.new"
        state = {"network": trained(self.network), "optimizer": self.optimizer.state_dict()}
        torch.save({"plan": asdict(self.plan), "progress": asdict(progress), **state}, fresh)
        fresh.replace(folder / CHECKPOINT)
        (folder / PROGRESS).write_text(json.dumps(asdict(progress), indent=1) + "\n", encoding="utf-8")

    def load(self, folder: Path, key: str) -> Progress:
        """Restore the checkpoint of a folder; raises UsageError for one of another training."""
        import torch

        kept = torch.load(folder / CHECKPOINT, map_location=self.device, weights_only=True)
        progress = Progress(**kept["progress"])
        if progress.key != key:
            raise UsageError(f"The checkpoint in {folder} is of another training: choose another folder with --out.")
        restore(self.network, kept["network"])
        self.optimizer.load_state_dict(kept["optimizer"])
        return progress


def trained_network(run: Path, base: Path) -> "Module":
    """Return the network of a training's last checkpoint; raises UsageError if there is none."""
    import torch

    if not (run / CHECKPOINT).is_file():
        raise UsageError(f"There is no {CHECKPOINT} in {run}: name the folder of a training.")
    kept = torch.load(run / CHECKPOINT, map_location="cpu", weights_only=True)
    network = from_pretrained(base, rank=kept["plan"]["rank"])
    restore(network, kept["network"])
    return network


@dataclass(kw_only=True)
class Epochs:
    """Encoded examples, made once for each epoch and stored in a folder; `key` is that of the training."""

    items: Callable[[], Sequence[Item]]
    layout: Layout
    plan: Plan
    folder: Path
    key: str

    def steps(self, number: int) -> list[list[list[Row]]]:
        """Return the steps of an epoch, each a list of batches."""
        file = self.folder / f"epoch-{number}-{self.key[:12]}.npz"
        seed = self.plan.seed + 1000 * number
        if not file.is_file():
            self._encode(file, seed)
        batched = batches(load_rows(file), tokens=self.plan.batch, seed=seed)
        size = self.plan.batches_per_step
        return [batched[at : at + size] for at in range(0, len(batched), size)]

    def _encode(self, file: Path, seed: int) -> None:
        examples = epoch(with_neighbors(self.items()), seed)
        sys.stderr.write(f"Examples: {json.dumps(by_composition(examples))}\n")
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("epoch-*.npz"):
            old.unlink()
        save_rows([encode(example, self.layout) for example in examples], file)


def learn(training: Training, epochs: Epochs, *, out: Path, key: str, minutes: float) -> Progress:
    """Take the steps that are left, or those that begin in time; return the progress."""
    plan = training.plan
    progress = training.load(out, key) if (out / CHECKPOINT).is_file() else Progress(key=key)
    saved, end = time.monotonic(), time.monotonic() + 60 * minutes
    for step in _steps_left(epochs, progress):
        begun, used = time.monotonic(), time.process_time()
        parts = training.step(step, progress)
        progress.step += 1
        progress.tokens += sum(len(row.tokens) for batch in step for row in batch)
        progress.seconds += time.monotonic() - begun
        progress.cpu_seconds += time.process_time() - used
        progress.losses.append({"tokens": progress.tokens, **{name: round(loss, 4) for name, loss in parts.items()}})
        if progress.step % 20 == 0:
            _report_progress(plan, progress)
        if time.monotonic() - saved > SAVE_SECONDS:
            training.save(out, progress)
            saved = time.monotonic()
        if time.monotonic() > end:
            break
    training.save(out, progress)
    return progress


def _steps_left(epochs: Epochs, progress: Progress) -> Iterator[list[list[Row]]]:
    """Yield steps from the progress on, to the end of the plan."""
    while progress.tokens < epochs.plan.tokens:
        for step in epochs.steps(progress.epoch)[progress.step :]:
            if progress.tokens >= epochs.plan.tokens:
                return
            yield step
        progress.epoch, progress.step = progress.epoch + 1, 0


def _report_progress(plan: Plan, progress: Progress) -> None:
    parts = ", ".join(f"{name} {loss:.3f}" for name, loss in recent_losses(progress, 20).items())
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
    """Train, or resume a training; return the report.

    Args:
        data: the folder with the training files.
        out: the folder of the checkpoint.
        plan: the hyperparameters.
        base: the folder of the pretrained encoder.
        worlds: a folder of synthetic worlds to learn from, too.
        start: the folder of an earlier training, whose weights this one begins with.
        minutes: stop at a checkpoint after this time; None trains to the end.

    Raises:
        UsageError: files that cannot be used, or a checkpoint of another training.
    """
    import torch

    begun = time.monotonic()
    torch.manual_seed(plan.seed)
    network = trained_network(start, base) if start else from_pretrained(base, rank=plan.rank)
    begin = sha256((start / CHECKPOINT).read_bytes()).hexdigest() if start else None
    kept = {name: value for name, value in asdict(plan).items() if name not in MAY_CHANGE}
    files = [file for folder in (data, worlds) if folder for file in sorted(folder.rglob("*.json*"))]
    sizes = [(file.name, file.stat().st_size) for file in files]
    identity = [kept, sizes, begin, (base / "config.json").read_text("utf-8")]
    key = sha256(json.dumps(identity).encode()).hexdigest()

    def items() -> list[Item]:
        return [*of_part(read_items(data, worlds), "train"), *read_comparisons(data)]

    epochs = Epochs(
        items=items,
        layout=Layout(base / "tokenizer.json", piece=PIECE),
        plan=plan,
        folder=out,
        key=key,
    )
    left = math.inf if minutes is None else minutes - (time.monotonic() - begun) / 60
    progress = learn(Training(network, plan), epochs, out=out, key=key, minutes=left)
    return {
        "plan": asdict(plan),
        "finished": progress.tokens >= plan.tokens,
        "epoch": progress.epoch,
        "tokens": progress.tokens,
        "tokens_per_second": round(progress.tokens / progress.seconds, 1) if progress.seconds else None,
        "tokens_per_cpu_second": round(progress.tokens / progress.cpu_seconds, 1) if progress.cpu_seconds else None,
        "losses": recent_losses(progress),
    }


def recent_losses(progress: Progress, steps: int = 100) -> dict[str, float]:
    """Return the mean of each part of the loss over the last steps."""
    recent = progress.losses[-steps:]
    names = [name for name in recent[0] if name != "tokens"] if recent else []
    return {name: round(sum(each[name] for each in recent) / len(recent), 4) for name in names}


def main(
    data: Annotated[Path, typer.Argument(help="Folder with the training files: train/squad2.jsonl.gz and so on.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the checkpoint.")],
    base: Annotated[Path | None, typer.Option(help="Folder of the encoder to start from; default: MiniLM.")] = None,
    worlds: Annotated[Path | None, typer.Option(help="Folder of synthetic worlds to learn from, too.")] = None,
    start: Annotated[Path | None, typer.Option(help="Folder of a training to start from; default: none.")] = None,
    tokens: Annotated[int, typer.Option(help="Tokens of the whole training.")] = Plan().tokens,
    rate: Annotated[float, typer.Option(help="The largest learning rate.")] = Plan().rate,
    decay: Annotated[float, typer.Option(help="Share of the tokens over which the rate falls.")] = Plan().decay,
    rank: Annotated[int, typer.Option(help="Rank of adapters of the encoder; 0 trains all weights.")] = Plan().rank,
    minutes: Annotated[float | None, typer.Option(help="Stop at a checkpoint after this time.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of torch; default: torch's own.")] = None,
    seed: Annotated[int, typer.Option(help="For the order, the negatives and dropout.")] = Plan().seed,
) -> None:
    """Train the evidence checker, and print a report as JSON."""
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        import torch

        torch.set_num_threads(threads)
    plan = Plan(tokens=tokens, rate=rate, decay=decay, rank=rank, seed=seed)
    report = train(data, out, plan, base=base or base_folder(), worlds=worlds, start=start, minutes=minutes)
    typer.echo(json.dumps(report, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
