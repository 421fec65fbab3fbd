"""Fine-tuning of an adapter on training examples."""

from training.roles.tuning.batches import (
    USUAL,
    Plan,
    Row,
    apply_template,
    prompt_token_ids,
    read_examples,
    tokenize_examples,
    tokenize_reply,
)
from training.roles.tuning.tune import Tuning, run_tuning

__all__ = [
    "USUAL",
    "Plan",
    "Row",
    "Tuning",
    "apply_template",
    "prompt_token_ids",
    "read_examples",
    "run_tuning",
    "tokenize_examples",
    "tokenize_reply",
]
