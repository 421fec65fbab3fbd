"""The network: MiniLM's encoder with linear heads, and what it learns."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from training.evidence_checker.examples import UNKNOWN

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from training.evidence_checker.batches import Batch

Outputs: TypeAlias = "tuple[Tensor, Tensor]"
SHARES = {"span": 1.0, "answerable": 1.0, "kind": 0.5, "relation": 1.0, "relevance": 0.5}
"""Weights of the parts of the loss."""


def from_pretrained(folder: Path) -> "Module":
    """Return the network with an encoder's pretrained weights and new heads.

    Without dropout on attention weights: PyTorch's fused attention for processors has none, and it is twice as fast.
    """
    from transformers import BertModel

    kind: Any = BertModel
    options = {"add_pooling_layer": False, "attention_probs_dropout_prob": 0.0}
    encoder = kind.from_pretrained(folder, local_files_only=True, **options)
    return _network(encoder, encoder.config.hidden_size)


def _network(encoder: "Module", width: int) -> "Module":
    from torch import Tensor, nn

    class Network(nn.Module):
        """An encoder with two heads.

        One is for tokens: start, end, relevance. The other is read at `[CLS]`, for the whole: answerable; span, yes,
        no; supported, contradicted, not mentioned.
        """

        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.tokens = nn.Linear(width, 3)
            self.whole = nn.Linear(width, 7)
            for head in (self.tokens, self.whole):
                nn.init.normal_(head.weight, std=0.02)
                nn.init.zeros_(head.bias)

        def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Outputs:
            """Return logits of the tokens (rows, length, 3) and of the whole (rows, 7), in float32."""
            hidden = self.encoder(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            ).last_hidden_state
            return self.tokens(hidden).float(), self.whole(hidden[:, 0]).float()

    return Network()


def losses(outputs: Outputs, batch: "Batch") -> "dict[str, Tensor]":
    """Return the parts of the loss, each the sum over the rows that have a label, divided by all rows."""
    from torch.nn.functional import cross_entropy

    tokens, whole = outputs
    rows = len(batch.ids)
    found = {
        "span": (_span(tokens[:, :, 0], batch.text, batch.starts) + _span(tokens[:, :, 1], batch.text, batch.ends)) / 2,
        "answerable": _binary(whole[:, 0], batch.answerable),
        "kind": cross_entropy(whole[:, 1:4], batch.kind, ignore_index=UNKNOWN, reduction="sum"),
        "relation": cross_entropy(whole[:, 4:7], batch.relation, ignore_index=UNKNOWN, reduction="sum"),
        "relevance": _binary(_by_piece(tokens[:, :, 2], batch.piece, len(batch.relevant)), batch.relevant),
    }
    return {name: loss / rows for name, loss in found.items()}


def _span(logits: "Tensor", text: "Tensor", wanted: "Tensor") -> "Tensor":
    """Return the sum of the negative log-probabilities of all wanted tokens together, among those of the text.

    An answer that occurs several times has several right places (Clark and Gardner, 2018, section 3.3).
    """
    has = wanted.any(1)
    if not has.any():
        return logits.sum() * 0
    chances = logits[has].masked_fill(~text[has], -1e4).log_softmax(1)
    return -chances.masked_fill(~wanted[has], -1e4).logsumexp(1).sum()


def _by_piece(logits: "Tensor", piece: "Tensor", pieces: int) -> "Tensor":
    """Return the mean logit of the tokens of each piece."""
    inside = piece != UNKNOWN
    sums, counts = (logits.new_zeros(pieces) for _ in range(2))
    sums = sums.index_add(0, piece[inside], logits[inside])
    return sums / counts.index_add(0, piece[inside], logits.new_ones(int(inside.sum())))


def _binary(logits: "Tensor", labels: "Tensor") -> "Tensor":
    from torch.nn.functional import binary_cross_entropy_with_logits

    known = labels != UNKNOWN
    return binary_cross_entropy_with_logits(logits[known], labels[known].float(), reduction="sum")
