"""Examples as token ids with labels, in batches of similar length."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.evidence_checker.inputs import Layout, Piece
from training.batching import cut_batches
from training.evidence_checker.examples import UNKNOWN, Example, occurrences

if TYPE_CHECKING:
    import torch

_POOL = 512
"""Examples in random order that are sorted by length and cut into batches."""
_STEP = 16
_TOKEN = np.dtype(
    [("ids", "i4"), ("types", "i1"), ("text", "?"), ("starts", "?"), ("ends", "?"), ("support", "i1"), ("piece", "i2")]
)
"""A token with its labels, as in a batch; `piece` is its number in the row."""


_Spans: TypeAlias = Sequence[Sequence[tuple[int, int]]]
"""Spans of characters in each passage."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A window with labels.

    `tokens` are of _TOKEN, `relevant` has a value for each piece, and `whole` are answerable, kind and relation.
    """

    tokens: NDArray[Any]
    relevant: NDArray[np.int8]
    whole: NDArray[np.int8]


PIECE = 96
"""Tokens of a piece, so that a window holds four; what is not relevant in a long passage takes no place in it."""


def encode(example: Example, layout: Layout) -> Row:
    """Return the example in one window.

    Pieces that do not fit are left out: those of relevant passages are the last to go, and of a long passage the part
    with the answer is kept.
    """
    question = layout.question(example.text)
    pieces = layout.pieces(question, example.passages)
    answers = [
        occurrences(example.answers, passage.text) if relevant == 1 and example.answers else []
        for passage, relevant in zip(example.passages, example.relevant, strict=True)
    ]
    facts = [
        [(at, at + len(fact)) for fact in example.facts if (at := passage.text.find(fact)) >= 0]
        for passage in example.passages
    ]
    relevance = _relevance(pieces, example, answers, facts)
    ranks = [2.0 * bool(_inside(piece, answers[piece.passage])) + abs(relevance[id(piece)]) for piece in pieces]
    window = layout.best(question, pieces, ranks)
    tokens = np.zeros(len(window.ids), _TOKEN)
    tokens["ids"], tokens["types"], tokens["piece"], tokens["support"] = window.ids, window.types, UNKNOWN, UNKNOWN
    for number, (piece, begin, first, closing) in enumerate(window.places()):
        tokens["piece"][begin : closing + 1] = number
        tokens["text"][first:closing] = True
        for start, end in _inside(piece, answers[piece.passage]):
            tokens["starts"][first + start] = tokens["ends"][first + end] = True
        if example.facts:
            tokens["support"][first:closing] = 0
        for start, end in _inside(piece, facts[piece.passage]):
            tokens["support"][first + start : first + end + 1] = 1
    return Row(
        tokens=tokens,
        relevant=np.array([relevance[id(piece)] for piece in window.pieces], np.int8),
        whole=np.array([example.answerable, example.kind, example.relation], np.int8),
    )


def tokens_of(piece: Piece, start: int, end: int) -> tuple[int, int] | None:
    """Return the first and last token of characters in the passage's text; None if they are not in the piece."""
    first, last = bisect_right(piece.ends, start), bisect_left(piece.starts, end) - 1
    if not piece.ids or start < piece.starts[0] or end > piece.ends[-1] or first > last:
        return None
    return first, last


def _inside(piece: Piece, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first and last tokens of the spans that are in the piece."""
    return [found for span in spans if (found := tokens_of(piece, *span))]


def _relevance(pieces: Sequence[Piece], example: Example, answers: _Spans, facts: _Spans) -> dict[int, int]:
    """Return the labels of the pieces by their identity.

    It is the label of the passage, but of an evidence passage that is cut only pieces with an answer or fact are
    relevant.
    """
    cut = Counter(piece.passage for piece in pieces)
    relevance = {}
    for piece in pieces:
        label = example.relevant[piece.passage]
        if label == 1 and cut[piece.passage] > 1 and (example.facts or example.answers):
            has_part = _inside(piece, answers[piece.passage]) or _inside(piece, facts[piece.passage])
            label = 1 if has_part else 0 if example.facts else UNKNOWN
        relevance[id(piece)] = label
    return relevance


def save_rows(rows: Sequence[Row], file: Path) -> None:
    """Write rows to a file, atomically."""
    fresh = file.with_suffix(".new")
    with fresh.open("wb") as out:
        np.savez(
            out,
            tokens=np.concatenate([row.tokens for row in rows]),
            lengths=np.array([len(row.tokens) for row in rows]),
            relevant=np.concatenate([row.relevant for row in rows]),
            pieces=np.array([len(row.relevant) for row in rows]),
            whole=np.stack([row.whole for row in rows]),
        )
    fresh.replace(file)


def load_rows(file: Path) -> list[Row]:
    """Return the rows of a file."""
    with np.load(file) as saved:
        tokens = np.split(saved["tokens"], np.cumsum(saved["lengths"])[:-1])
        relevant = np.split(saved["relevant"], np.cumsum(saved["pieces"])[:-1])
        parts = zip(tokens, relevant, saved["whole"], strict=True)
        return [Row(tokens=own, relevant=labels, whole=whole) for own, labels, whole in parts]


def batches(rows: Sequence[Row], *, tokens: int, seed: int) -> list[list[Row]]:
    """Return every row once, in random batches of similar length within the token limit including padding."""
    dice = Random(seed)  # noqa: S311 - repeatable by design
    return cut_batches(rows, length=lambda row: len(row.tokens), step=_STEP, pool=_POOL, tokens=tokens, dice=dice)


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Tensors of a batch.

    `ids`, `types` and `mask` (rows, length) are the input; `text` (rows, length) marks tokens that may be in an answer,
    `starts` and `ends` those that begin and end one, `support` is 1 in supporting sentences and UNKNOWN where these are
    not known, and `piece` has the number of the token's piece in the batch, UNKNOWN outside pieces. `relevant` (pieces)
    has the labels of the pieces; `answerable`, `kind` and `relation` (rows) are labels of the whole input.
    """

    ids: "torch.Tensor"
    types: "torch.Tensor"
    mask: "torch.Tensor"
    text: "torch.Tensor"
    starts: "torch.Tensor"
    ends: "torch.Tensor"
    support: "torch.Tensor"
    piece: "torch.Tensor"
    relevant: "torch.Tensor"
    answerable: "torch.Tensor"
    kind: "torch.Tensor"
    relation: "torch.Tensor"

    def to(self, device: "torch.device") -> "Batch":
        """Return the batch on a device."""
        return Batch(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})


def collate(rows: Sequence[Row]) -> Batch:
    """Return the rows as tensors of one length."""
    import torch

    length = -(-max(len(row.tokens) for row in rows) // _STEP) * _STEP
    table = np.zeros((len(rows), length), _TOKEN)
    table["piece"] = table["support"] = UNKNOWN
    mask = np.zeros((len(rows), length), np.bool_)
    pieces = 0
    for at, row in enumerate(rows):
        size = len(row.tokens)
        table[at, :size], mask[at, :size] = row.tokens, True
        table["piece"][at, :size][row.tokens["piece"] != UNKNOWN] += pieces
        pieces += len(row.relevant)
    marks = {name: torch.from_numpy(table[name].copy()) for name in ("text", "starts", "ends")}
    numbers = {name: torch.from_numpy(table[name].astype(np.int64)) for name in ("ids", "types", "support", "piece")}
    whole = torch.from_numpy(np.stack([row.whole for row in rows]).astype(np.int64))
    return Batch(
        **marks,
        **numbers,
        mask=torch.from_numpy(mask),
        relevant=torch.from_numpy(np.concatenate([row.relevant for row in rows]).astype(np.int64)),
        answerable=whole[:, 0],
        kind=whole[:, 1],
        relation=whole[:, 2],
    )
