"""Roles that decide what to look for next."""

from sleuth.agents.roles.planning.expander import EXPAND
from sleuth.agents.roles.planning.follow_up import FOLLOW_UP, FollowUp, FollowUpInput
from sleuth.agents.roles.planning.planner import MAX_STEPS, PLAN, OrderedStep, Plan, PlanStep
from sleuth.agents.roles.planning.search_agent import ACT, ActInput, Action, SearchResult
from sleuth.agents.roles.planning.subqueries import (
    BEGIN,
    NEXT,
    NEXT_WITH_FINDING,
    NO_RETRIEVAL,
    SUBQ,
    SUFFICIENT,
    Bare,
    NextWithFinding,
    SoFar,
    values,
)

__all__ = [
    "ACT",
    "BEGIN",
    "EXPAND",
    "FOLLOW_UP",
    "MAX_STEPS",
    "NEXT",
    "NEXT_WITH_FINDING",
    "NO_RETRIEVAL",
    "PLAN",
    "SUBQ",
    "SUFFICIENT",
    "ActInput",
    "Action",
    "Bare",
    "FollowUp",
    "FollowUpInput",
    "NextWithFinding",
    "OrderedStep",
    "Plan",
    "PlanStep",
    "SearchResult",
    "SoFar",
    "values",
]
