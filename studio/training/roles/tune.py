"""Tunes a small model for all roles: `python -m sleuth.studio.training.roles.tune EXAMPLES --base MODEL --out ADAPTER`.

LoRA (Hu et al., 2021) on all linear layers, all roles mixed at random, loss on the replies only. Run again after an
interruption it goes on from its last checkpoint, which is kept beside the adapter until the end.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sleuth.studio.cli import guarded
from sleuth.tools.errors import UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase, Trainer

IGNORED = -100
"""The label of tokens that are not learned."""
HELD_OUT = 25
"""Of so many questions one is kept for validation."""
LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

Tokens = dict[str, list[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How it is tuned: the rank of the adapter, examples in a batch, epochs over the examples, and the step size."""

    rank: int = 16
    batch: int = 4
    batches_per_step: int = 4
    epochs: float = 1.0
    rate: float = 4e-4
    seed: int = 0
    save_every: int = 50


def read_examples(file: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The examples to learn from, and those of one question in HELD_OUT, kept for validation.

    Raises:
        UsageError: the file is missing, or a line of it is no example.
    """
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        marks = [int(sha256(row["question"].encode()).hexdigest(), 16) % HELD_OUT for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"The examples in {file} cannot be read ({error}): make them with roles.examples.") from None
    return [row for row, mark in zip(rows, marks, strict=True) if mark], [
        row for row, mark in zip(rows, marks, strict=True) if not mark
    ]


def tokenized(row: dict[str, Any], tokenizer: "PreTrainedTokenizerBase") -> Tokens:
    """A prompt as the server writes it, with the reply and its end behind it; only these have labels."""
    asked = tokenizer.apply_chat_template(row["messages"], add_generation_prompt=True, tokenize=False)
    prompt = tokenizer(asked, add_special_tokens=False)["input_ids"]
    reply = tokenizer(row["reply"] + tokenizer.eos_token, add_special_tokens=False)["input_ids"]
    return {"input_ids": [*prompt, *reply], "labels": [*[IGNORED] * len(prompt), *reply]}


def padded(rows: Sequence[Tokens]) -> dict[str, "torch.Tensor"]:
    """Rows of one length, as a batch."""
    import torch

    longest = max(len(row["input_ids"]) for row in rows)

    def filled(name: str, value: int) -> "torch.Tensor":
        return torch.tensor([row[name] + [value] * (longest - len(row[name])) for row in rows])

    ids = filled("input_ids", 0)
    mask = torch.tensor([[1] * len(row["input_ids"]) + [0] * (longest - len(row["input_ids"])) for row in rows])
    return {"input_ids": ids, "attention_mask": mask, "labels": filled("labels", IGNORED)}


def at_labels(model: "torch.nn.Module", batch: dict[str, "torch.Tensor"]) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Logits where there is a label, and the labels: the others would cost a fifth of the time for nothing."""

    hidden = model.get_submodule("model")(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])[0]
    following = batch["labels"][:, 1:]
    wanted = following != IGNORED
    return model.get_submodule("lm_head")(hidden[:, :-1][wanted]), following[wanted]


def trainer(model: "torch.nn.Module", rows: Sequence[Tokens], folder: Path, plan: Plan) -> "Trainer":
    """What tunes the model, with its checkpoints in a folder."""
    import torch
    from torch.nn.functional import cross_entropy
    from transformers import Trainer, TrainingArguments

    class OnReplies(Trainer):
        def compute_loss(self, model: Any, inputs: Any, *_: object, **__: object) -> Any:  # noqa: ANN401 - as the base has it
            return cross_entropy(*at_labels(model.get_base_model(), inputs))

    settings = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=plan.batch,
        gradient_accumulation_steps=plan.batches_per_step,
        num_train_epochs=plan.epochs,
        learning_rate=plan.rate,
        lr_scheduler_type="cosine",
        warmup_steps=20,
        train_sampling_strategy="group_by_length",
        bf16=True,
        use_cpu=not torch.cuda.is_available(),
        seed=plan.seed,
        save_steps=plan.save_every,
        save_total_limit=1,
        logging_steps=10,
        remove_unused_columns=False,
        report_to=[],
    )
    return OnReplies(model=model, args=settings, train_dataset=rows, data_collator=padded)


def validate(model: "torch.nn.Module", rows: Iterable[tuple[str, Tokens]]) -> dict[str, dict[str, float]]:
    """By prompt: the loss per token, and the share of replies of which every token is the likeliest."""
    import torch
    from torch.nn.functional import cross_entropy

    found: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for prompt, row in rows:
            logits, labels = at_labels(model, padded([row]))
            loss = cross_entropy(logits.float(), labels).item()
            found[prompt].append((loss, bool((logits.argmax(-1) == labels).all())))
    return {
        prompt: {
            "examples": len(own),
            "loss": round(sum(loss for loss, _ in own) / len(own), 4),
            "exact": round(sum(exact for _, exact in own) / len(own), 4),
        }
        for prompt, own in sorted(found.items())
    }


def tune(examples: Path, base: Path, out: Path, plan: Plan, *, limit: int | None = None) -> dict[str, Any]:
    """Writes the adapter; returns how the held-out replies were met before and after."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    learned, held_out = read_examples(examples)
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    torch.manual_seed(plan.seed)
    bare = AutoModelForCausalLM.from_pretrained(base, local_files_only=True, dtype=torch.bfloat16)
    checked = [(row["prompt"], tokenized(row, tokenizer)) for row in held_out]
    before = validate(bare, checked)
    adapted = LoraConfig(r=plan.rank, lora_alpha=2 * plan.rank, target_modules=list(LAYERS), task_type="CAUSAL_LM")
    model = get_peft_model(bare, adapted)
    rows = [tokenized(row, tokenizer) for row in learned[:limit]]
    checkpoints = out / "checkpoints"
    work = trainer(model, rows, checkpoints, plan)
    work.train(resume_from_checkpoint=any(checkpoints.glob("checkpoint-*")))
    model.save_pretrained(str(out))
    report = {
        "examples": len(rows),
        "tokens": sum(len(row["input_ids"]) for row in rows),
        "learned_tokens": sum(label != IGNORED for row in rows for label in row["labels"]),
        "loss": [each["loss"] for each in work.state.log_history if "loss" in each],
        "before": before,
        "after": validate(model.get_base_model(), checked),
    }
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    return report


def main(
    examples: Annotated[Path, typer.Argument(help="`examples.jsonl`, as roles.examples has made it.")],
    *,
    base: Annotated[Path, typer.Option(help="Folder of the model to tune: `SLEUTH_HOME/models/...`.")],
    out: Annotated[Path, typer.Option(help="The adapter's folder; checkpoints are kept in it until the end.")],
    limit: Annotated[int | None, typer.Option(help="Examples to learn from; default: all.")] = None,
    rank: Annotated[int, typer.Option(help="Rank of the adapter.")] = 16,
    epochs: Annotated[float, typer.Option(help="Times over all examples.")] = 1.0,
    seed: Annotated[int, typer.Option(help="For the order of examples, and the adapter's first weights.")] = 0,
) -> None:
    """Tune a model on examples, and print what came of it as JSON."""
    typer.echo(json.dumps(tune(examples, base, out, Plan(rank=rank, epochs=epochs, seed=seed), limit=limit), indent=1))


if __name__ == "__main__":
    guarded(lambda: typer.run(main))
