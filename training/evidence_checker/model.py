"""The network: an encoder with linear heads, and what it learns."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker.checker import Floats, Ids, Run
from sleuth.tools.evidence_checker.large_model import DOWN, UP
from training.evidence_checker.examples import UNKNOWN
from training.merge_adapter import merge_while_tuning

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from training.evidence_checker.batches import Batch

Outputs: TypeAlias = "tuple[Tensor, Tensor]"
SHARES = {"span": 1.0, "answerable": 1.0, "kind": 0.5, "relation": 1.0, "relevance": 0.5, "support": 1.0}
"""Weights of the parts of the loss."""


def from_pretrained(folder: Path, *, rank: int = 0) -> "Module":
    """Return the network with an encoder's pretrained weights and new heads.

    With a rank, only low-rank adapters of all linear layers (Hu et al., 2021) and the heads are trained; the weights
    are in bfloat16. Attention weights have no dropout: PyTorch's fused attention for processors has none, and it is
    twice as fast.
    """
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModel

    kind: Any = AutoModel
    options = {"add_pooling_layer": False, "attention_probs_dropout_prob": 0.0}
    if not rank:
        return _network(kind.from_pretrained(folder, local_files_only=True, **options))
    encoder = kind.from_pretrained(
        folder, local_files_only=True, dtype=torch.bfloat16, hidden_dropout_prob=0.0, **options
    )
    adapted = get_peft_model(encoder, LoraConfig(r=rank, lora_alpha=rank, target_modules="all-linear"))
    merge_while_tuning(adapted)
    return _network(adapted)


def merge(network: "Module") -> "Module":
    """Return the network in float32, with its adapters, if it has any, added to the weights."""
    encoder: Any = network.encoder
    if hasattr(encoder, "merge_and_unload"):
        network.encoder = encoder.merge_and_unload()
    return network.float()


def trained(network: "Module") -> "dict[str, Tensor]":
    """Return the weights that are trained."""
    return {name: weight.detach() for name, weight in network.named_parameters() if weight.requires_grad}


def adapter_weights(network: "Module") -> "dict[str, Tensor]":
    """Return an adapter's matrices by the name of the base's weight and `down` or `up`, and the heads' weights."""
    parts = {".lora_A.default.weight": f".weight.{DOWN}", ".lora_B.default.weight": f".weight.{UP}"}
    found = {}
    for name, weight in trained(network).items():
        short = name.removeprefix("encoder.base_model.model.")
        for part, own in parts.items():
            short = short.replace(part, own)
        found[short] = weight
    return found


def restore(network: "Module", weights: "Mapping[str, Tensor]") -> None:
    """Set trained weights; raises UsageError if they are of a network of another kind."""
    if weights.keys() != trained(network).keys():
        raise UsageError("The checkpoint is of another network: use the --base and --rank that it was trained with.")
    network.load_state_dict(weights, strict=False)


def runner(network: "Module") -> Run:
    """Return the network as a reader calls it."""
    import torch

    device = next(network.parameters()).device

    def run(ids: Ids, mask: Ids, types: Ids) -> tuple[Floats, Floats]:
        network.eval()
        with torch.no_grad():
            tokens, whole = network(*(torch.from_numpy(each).to(device) for each in (ids, mask, types)))
        return tokens.cpu().numpy(), whole.cpu().numpy()

    return run


def _network(encoder: Any) -> "Module":  # noqa: ANN401 - models of transformers and peft are not typed
    from torch import Tensor, nn

    width, has_types = encoder.config.hidden_size, getattr(encoder.config, "type_vocab_size", 0) > 1

    class Network(nn.Module):
        """An encoder with two heads.

        One is for tokens: start, end, relevance, supporting sentence. The other is read at `[CLS]`, for the whole:
        answerable; span, yes, no; supported, contradicted, not mentioned.
        """

        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.tokens = nn.Linear(width, 4)
            self.whole = nn.Linear(width, 7)
            for head in (self.tokens, self.whole):
                nn.init.normal_(head.weight, std=0.02)
                nn.init.zeros_(head.bias)

        def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Outputs:
            """Return logits of the tokens (rows, length, 4) and of the whole (rows, 7), in float32."""
            types = {"token_type_ids": token_type_ids} if has_types else {}
            inputs = {"input_ids": input_ids, "attention_mask": attention_mask, **types}
            hidden = self.encoder(**inputs).last_hidden_state.float()
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
        "support": _support(tokens[:, :, 3], batch.support),
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


def _support(logits: "Tensor", labels: "Tensor") -> "Tensor":
    """Return the sum over the rows of the mean loss of their tokens."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    known = labels != UNKNOWN
    each = binary_cross_entropy_with_logits(logits, labels.clamp(min=0).float(), reduction="none") * known
    return (each.sum(1) / known.sum(1).clamp(min=1)).sum()


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
