"""Examples as tokens, and in batches of rows of like length: what is padded is computed for nothing."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from sleuth.agents.model import Message
from sleuth.tools.errors import UsageError
from training.batching import cut_batches

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

IGNORED = -100
"""The label of tokens that are not learned."""
HELD_OUT = 25
"""One of this many questions is held out for validation."""
POOL = 256
"""Number of random examples that are sorted by length and cut into batches."""
_ANSWER = re.compile(r'"answer":"((?:[^"\\]|\\.)*")')
_VERDICT = re.compile(r'"(?:answerable|known|final|status|plan)":(true|false|"[^"]*")')


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """An example's tokens: those of the prompt, then those of the reply and its end, which are learned.

    Counted from the reply's beginning, `answer` are the tokens of the answer (or of the refusal), and `verdict` those
    that determine the rest: answerability, a review's finding, a plan's continuation.
    """

    prompt: str
    ids: list[int]
    learned: int
    answer: tuple[int, ...] = ()
    verdict: tuple[int, ...] = ()

    @property
    def labels(self) -> list[int]:
        """The label at each position."""
        return [IGNORED] * (len(self.ids) - self.learned) + self.ids[len(self.ids) - self.learned :]

    def weights(self, answer: float, verdict: float) -> list[float]:
        """Return the weights of the learned tokens; their sum is the root of their number.

        The verdict has at least this share of them, and the answer its share of the rest: they are few tokens among
        those of the citations.
        """
        even = [1 / math.sqrt(self.learned)] * self.learned
        return _raised(_raised(even, self.answer, answer), self.verdict, verdict)


def _raised(weights: list[float], places: Sequence[int], share: float) -> list[float]:
    """Return the same in all, of which these places have at least a share."""
    whole, own = sum(weights), sum(weights[at] for at in places)
    if not places or own >= share * whole:
        return weights
    more, less = share * whole / own, (1 - share) * whole / (whole - own)
    return [each * (more if at in places else less) for at, each in enumerate(weights)]


def read_examples(file: Path, prompts: Sequence[str] = ()) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the training examples of these prompts, or of all, and those of one question in HELD_OUT, for validation.

    Raises:
        UsageError: the file is missing, one of its lines is not an example, or none is of these prompts.
    """
    try:
        rows = [json.loads(line) for line in file.read_bytes().splitlines() if line.strip()]
        marks = [int(sha256(row["question"].encode()).hexdigest(), 16) % HELD_OUT for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"The examples in {file} cannot be read ({error}): make them with roles.data.examples."
        ) from None
    wanted = [(row, mark) for row, mark in zip(rows, marks, strict=True) if not prompts or row["prompt"] in prompts]
    if not wanted:
        raise UsageError(f"None of the examples in {file} is of these prompts: {', '.join(prompts) or 'it is empty'}.")
    return [row for row, mark in wanted if mark], [row for row, mark in wanted if not mark]


def tokenize_examples(rows: Iterable[dict[str, Any]], tokenizer: "PreTrainedTokenizerBase") -> list[Row]:
    """Return prompts in the server's chat template, followed by the replies and their end tokens."""
    found = []
    for row in rows:
        ids = prompt_token_ids(row["messages"], tokenizer)
        reply, answer, verdict = tokenize_reply(row["reply"], tokenizer)
        found.append(Row(prompt=row["prompt"], ids=[*ids, *reply], learned=len(reply), answer=answer, verdict=verdict))
    return found


def tokenize_reply(
    reply: str, tokenizer: "PreTrainedTokenizerBase"
) -> tuple[list[int], tuple[int, ...], tuple[int, ...]]:
    """Return a reply's tokens with its end, and the positions of its answer and of its verdict among them."""
    encoded = tokenizer(reply + tokenizer.eos_token, add_special_tokens=False, return_offsets_mapping=True)
    return encoded["input_ids"], *decisive_tokens(reply, encoded["offset_mapping"])


def decisive_tokens(reply: str, offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the tokens of a reply that contain its answer (or end an empty one), and those of its verdict.

    `offsets` are the tokens' beginnings and ends, in characters.
    """
    return _places(_ANSWER, reply, offsets), _places(_VERDICT, reply, offsets)


def _places(what: re.Pattern[str], reply: str, offsets: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    found = what.search(reply)
    if not found:
        return ()
    begin, end = found.span(1)
    return tuple(at for at, (first, last) in enumerate(offsets) if first < end and last > begin)


def prompt_token_ids(messages: Sequence[Message], tokenizer: "PreTrainedTokenizerBase") -> list[int]:
    """Return the tokens of a prompt, up to the beginning of the reply in the chat template."""
    asked = apply_template(messages, tokenizer)
    ids: list[int] = tokenizer(asked, add_special_tokens=False)["input_ids"]
    return ids


def apply_template(messages: Sequence[Message], tokenizer: "PreTrainedTokenizerBase") -> str:
    """Return a prompt as the server writes it."""
    plain = [{"role": each["role"], "content": each["content"]} for each in messages]
    return str(tokenizer.apply_chat_template(plain, add_generation_prompt=True, tokenize=False))


def batches(rows: Sequence[Row], *, tokens: int, seed: int) -> list[list[Row]]:
    """Return every row once, in random batches within the token limit including padding (or of one row)."""
    dice = Random(seed)  # noqa: S311 - repeatable by design
    order = dice.sample(rows, len(rows))
    return cut_batches(order, length=lambda row: len(row.ids), pool=POOL, tokens=tokens, dice=dice)


def pad_batch(rows: Sequence[Row]) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Return ids and labels of one length; padding comes last, so that no learned token attends to it."""
    import torch

    longest = max(len(row.ids) for row in rows)
    ids = [row.ids + [0] * (longest - len(row.ids)) for row in rows]
    labels = [row.labels + [IGNORED] * (longest - len(row.ids)) for row in rows]
    return torch.tensor(ids), torch.tensor(labels)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Hyperparameters: rank, tokens per batch, batches per step, epochs, and the largest learning rate.

    `warm_up` is a number of steps, or below 1 a share of all steps. `verdict` is the minimum share of a reply's weight
    for its verdict, if it has one, `answer` the answer's share of the rest.
    """

    rank: int = 16
    tokens: int = 2400
    batches_per_step: int = 2
    epochs: int = 1
    rate: float = 5e-4
    answer: float = 0.5
    verdict: float = 0.25
    warm_up: float = 20
    seed: int = 0
    save_every: int = 20

    def steps(self, rows: Sequence[Row]) -> list[list[list[Row]]]:
        """Return the batches of every step."""
        found = [
            batch
            for epoch in range(self.epochs)
            for batch in batches(rows, tokens=self.tokens, seed=self.seed + 1000 * epoch)
        ]
        return [found[at : at + self.batches_per_step] for at in range(0, len(found), self.batches_per_step)]

    def rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate: linear warm-up, then cosine decay."""
        warm_up = self.warm_up if self.warm_up >= 1 else max(1.0, self.warm_up * steps)
        rising = min(1.0, (step + 1) / warm_up)
        return self.rate * rising * (1 + math.cos(math.pi * step / steps)) / 2


USUAL = Plan()
