"""Roles that judge: review, verification, evaluation and classification."""

from sleuth.agents.roles.judging.classifier import CHANGING, STATIC, InContextPredictor
from sleuth.agents.roles.judging.evaluator import (
    ATTRIBUTION,
    CONSISTENCY,
    RELEVANCE,
    SUPPORT,
    AttributionInput,
    RelevanceInput,
    SupportInput,
)
from sleuth.agents.roles.judging.judge import CORRECT, JUDGE, JudgeInput
from sleuth.agents.roles.judging.verifier import VERIFY, VerifyInput, again

__all__ = [
    "ATTRIBUTION",
    "CHANGING",
    "CONSISTENCY",
    "CORRECT",
    "JUDGE",
    "RELEVANCE",
    "STATIC",
    "SUPPORT",
    "VERIFY",
    "AttributionInput",
    "InContextPredictor",
    "JudgeInput",
    "RelevanceInput",
    "SupportInput",
    "VerifyInput",
    "again",
]
