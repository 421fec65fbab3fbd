"""Evidence checker: a small encoder that reads passages with a question or a statement.

For a question it returns the probability that the passages answer it and the best answer spans; for a statement, the
probabilities that the passages support it, contradict it, or do not mention it.
"""

from sleuth.tools.evidence_checker.checker import (
    NETWORK,
    SETTINGS,
    TOKENIZER,
    AnswerSpan,
    EvidenceChecker,
    Floats,
    Ids,
    Reading,
    Run,
    Support,
    Temperatures,
    find_checker,
)
from sleuth.tools.evidence_checker.inputs import WINDOW, Evidence, Layout, Piece, Window

__all__ = [
    "NETWORK",
    "SETTINGS",
    "TOKENIZER",
    "WINDOW",
    "AnswerSpan",
    "Evidence",
    "EvidenceChecker",
    "Floats",
    "Ids",
    "Layout",
    "Piece",
    "Reading",
    "Run",
    "Support",
    "Temperatures",
    "Window",
    "find_checker",
]
