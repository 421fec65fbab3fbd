"""Roles that reason over what was found."""

from sleuth.agents.roles.reasoning.chain_of_thought import THINK, ThinkInput
from sleuth.agents.roles.reasoning.evidence_discovery import INFER, REQUERY, Inferences
from sleuth.agents.roles.reasoning.reasoner import MAX_QUOTES, REASON, Reasoned, ReasonInput

__all__ = ["INFER", "MAX_QUOTES", "REASON", "REQUERY", "THINK", "Inferences", "ReasonInput", "Reasoned", "ThinkInput"]
