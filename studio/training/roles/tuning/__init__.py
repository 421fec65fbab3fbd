"""Fine-tuning of an adapter on training examples."""

from sleuth.studio.training.roles.tuning.batches import (
    USUAL,
    Plan,
    Row,
    asked_ids,
    in_template,
    read_examples,
    reply_ids,
    tokenized,
)
from sleuth.studio.training.roles.tuning.tune import Tuning, tuned

__all__ = [
    "USUAL",
    "Plan",
    "Row",
    "Tuning",
    "asked_ids",
    "in_template",
    "read_examples",
    "reply_ids",
    "tokenized",
    "tuned",
]
