"""Examples as token ids with labels, in batches of similar length."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import TYPE_CHECKING

from sleuth.tools.evidence_checker.inputs import Layout, Piece, Window
from training.batching import cut_batches
from training.evidence_checker.examples import UNKNOWN, Example, occurrences

if TYPE_CHECKING:
    import torch

_POOL = 512
"""Examples in random order that are sorted by length and cut into batches."""
_STEP = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A window with labels: first and last tokens of the answers, and a relevance for each piece."""

    window: Window
    spans: tuple[tuple[int, int], ...]
    relevant: tuple[int, ...]
    answerable: int
    kind: int
    relation: int


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
    ranks = [_rank(piece, example, answers) for piece in pieces]
    window = layout.best(question, pieces, ranks)
    spans = [
        (first + found[0], first + found[1])
        for piece, _, first, _ in window.places()
        for start, end in answers[piece.passage]
        if (found := tokens_of(piece, start, end))
    ]
    return Row(
        window=window,
        spans=tuple(spans),
        relevant=tuple(example.relevant[piece.passage] for piece in window.pieces),
        answerable=example.answerable,
        kind=example.kind,
        relation=example.relation,
    )


def tokens_of(piece: Piece, start: int, end: int) -> tuple[int, int] | None:
    """Return the first and last token of characters in the passage's text; None if they are not in the piece."""
    first, last = bisect_right(piece.ends, start), bisect_left(piece.starts, end) - 1
    if not piece.ids or start < piece.starts[0] or end > piece.ends[-1] or first > last:
        return None
    return first, last


def _rank(piece: Piece, example: Example, answers: Sequence[Sequence[tuple[int, int]]]) -> float:
    contains = any(tokens_of(piece, *span) for span in answers[piece.passage])
    return 2.0 * contains + (example.relevant[piece.passage] != 0)


def batches(rows: Sequence[Row], *, tokens: int, seed: int) -> list[list[Row]]:
    """Return every row once, in random batches of similar length within the token limit including padding."""
    dice = Random(seed)  # noqa: S311 - repeatable by design
    return cut_batches(rows, length=lambda row: len(row.window.ids), step=_STEP, pool=_POOL, tokens=tokens, dice=dice)


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Tensors of a batch.

    `ids`, `types` and `mask` (rows, length) are the input; `text` (rows, length) marks tokens that may be in an answer,
    `starts` and `ends` those that begin and end one, and `piece` has the number of the token's piece in the batch,
    UNKNOWN outside pieces. `relevant` (pieces) has the labels of the pieces; `answerable`, `kind` and `relation` (rows)
    are labels of the whole input.
    """

    ids: "torch.Tensor"
    types: "torch.Tensor"
    mask: "torch.Tensor"
    text: "torch.Tensor"
    starts: "torch.Tensor"
    ends: "torch.Tensor"
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

    shape = (len(rows), -(-max(len(row.window.ids) for row in rows) // _STEP) * _STEP)
    ids, types, piece = (torch.full(shape, value) for value in (0, 0, UNKNOWN))
    relevant: list[int] = []
    mask, text, starts, ends = (torch.zeros(shape, dtype=torch.bool) for _ in range(4))
    for at, row in enumerate(rows):
        window, size = row.window, len(row.window.ids)
        ids[at, :size], types[at, :size], mask[at, :size] = torch.tensor(window.ids), torch.tensor(window.types), True
        for (_, begin, first, closing), label in zip(window.places(), row.relevant, strict=True):
            text[at, first:closing] = True
            piece[at, begin : closing + 1] = len(relevant)
            relevant.append(label)
        for first, last in row.spans:
            starts[at, first] = ends[at, last] = True
    answerable, kind, relation = (
        torch.tensor([getattr(row, name) for row in rows]) for name in ("answerable", "kind", "relation")
    )
    return Batch(
        ids=ids, types=types, mask=mask, text=text, starts=starts, ends=ends, piece=piece,
        relevant=torch.tensor(relevant, dtype=torch.long), answerable=answerable, kind=kind, relation=relation,
    )  # fmt: skip
