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

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

IGNORED = -100
"""The label of tokens that are not learned."""
HELD_OUT = 25
"""Of so many questions one is kept for validation."""
POOL = 256
"""So many examples, drawn at random, are sorted by length and cut into batches."""
_ANSWER = re.compile(r'"answer":"((?:[^"\\]|\\.)*")')
_VERDICT = re.compile(r'"(?:answerable|known|final|status|plan)":(true|false|"[^"]*")')


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """An example's tokens: those of the prompt, then those of the reply and its end, which are learned.

    Counted from the reply's beginning, `answer` are those that say the answer, or that there is none, and `verdict`
    those that decide what comes after them: whether there is an answer, what a review finds, how a plan goes on.
    """

    prompt: str
    ids: list[int]
    learned: int
    answer: tuple[int, ...] = ()
    verdict: tuple[int, ...] = ()

    @property
    def labels(self) -> list[int]:
        """What is to be said at each place."""
        return [IGNORED] * (len(self.ids) - self.learned) + self.ids[len(self.ids) - self.learned :]

    def weights(self, answer: float, verdict: float) -> list[float]:
        """Of the tokens that are learned; their sum is the root of how many they are.

        The verdict has this share of them at least, and the answer its share of what is left: they are few words among
        those of the citations, which say little that they do not.
        """
        even = [1 / math.sqrt(self.learned)] * self.learned
        return _raised(_raised(even, self.answer, answer), self.verdict, verdict)


def _raised(weights: list[float], places: Sequence[int], share: float) -> list[float]:
    """The same in all, of which these places have at least a share."""
    whole, own = sum(weights), sum(weights[at] for at in places)
    if not places or own >= share * whole:
        return weights
    more, less = share * whole / own, (1 - share) * whole / (whole - own)
    return [each * (more if at in places else less) for at, each in enumerate(weights)]


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


def tokenized(rows: Iterable[dict[str, Any]], tokenizer: "PreTrainedTokenizerBase") -> list[Row]:
    """Prompts as the server writes them, with the replies and their ends behind them."""
    return [_tokenized(row, tokenizer) for row in rows]


def _tokenized(row: dict[str, Any], tokenizer: "PreTrainedTokenizerBase") -> Row:
    encoded = tokenizer(row["reply"] + tokenizer.eos_token, add_special_tokens=False, return_offsets_mapping=True)
    reply: list[int] = encoded["input_ids"]
    asked, (answer, verdict) = asked_ids(row["messages"], tokenizer), decisive(row["reply"], encoded["offset_mapping"])
    return Row(prompt=row["prompt"], ids=[*asked, *reply], learned=len(reply), answer=answer, verdict=verdict)


def decisive(reply: str, offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which tokens of a reply say its answer, or end an empty one, and which its verdict.

    `offsets` are the tokens' beginnings and ends, in characters.
    """
    return _places(_ANSWER, reply, offsets), _places(_VERDICT, reply, offsets)


def _places(what: re.Pattern[str], reply: str, offsets: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    found = what.search(reply)
    if not found:
        return ()
    begin, end = found.span(1)
    return tuple(at for at, (first, last) in enumerate(offsets) if first < end and last > begin)


def asked_ids(messages: Sequence[Message], tokenizer: "PreTrainedTokenizerBase") -> list[int]:
    """A prompt, with whatever the chat template has between its end and the reply."""
    asked = in_template(messages, tokenizer)
    ids: list[int] = tokenizer(asked, add_special_tokens=False)["input_ids"]
    return ids


def reply_ids(reply: str, tokenizer: "PreTrainedTokenizerBase") -> list[int]:
    """A reply and its end."""
    ids: list[int] = tokenizer(reply + tokenizer.eos_token, add_special_tokens=False)["input_ids"]
    return ids


def in_template(messages: Sequence[Message], tokenizer: "PreTrainedTokenizerBase") -> str:
    """A prompt as the server writes it."""
    plain = [{"role": each["role"], "content": each["content"]} for each in messages]
    return str(tokenizer.apply_chat_template(plain, add_generation_prompt=True, tokenize=False))


def batches(rows: Sequence[Row], *, tokens: int, seed: int) -> list[list[Row]]:
    """Every row once, in batches of at most so many tokens with their padding (or of one row), in random order."""
    dice = Random(seed)  # noqa: S311 - repeatable by design
    order = dice.sample(rows, len(rows))
    found: list[list[Row]] = []
    for at in range(0, len(order), POOL):
        batch: list[Row] = []
        for row in sorted(order[at : at + POOL], key=lambda row: len(row.ids)):
            if batch and len(row.ids) * (len(batch) + 1) > tokens:
                found.append(batch)
                batch = []
            batch.append(row)
        found.append(batch)
    dice.shuffle(found)
    return found


def padded(rows: Sequence[Row]) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Ids and labels of one length: padding comes last, where no token that is learned sees it."""
    import torch

    longest = max(len(row.ids) for row in rows)
    ids = [row.ids + [0] * (longest - len(row.ids)) for row in rows]
    labels = [row.labels + [IGNORED] * (longest - len(row.ids)) for row in rows]
    return torch.tensor(ids), torch.tensor(labels)
