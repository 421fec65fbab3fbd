"""Roles of the hybrid method: expressions, knowledge-graph queries, memory and references."""

from sleuth.agents.roles.hybrid.expression_writer import EXPRESS, ExpressInput, Expression
from sleuth.agents.roles.hybrid.graph_query_writer import (
    CHOOSE_CALLS,
    MAX_ENTITIES,
    NAME_ENTITIES,
    Argument,
    Call,
    Calls,
    ChooseInput,
    Entities,
    Entity,
)
from sleuth.agents.roles.hybrid.memory_answerer import RECALL_UNAIDED, Asked, Recollection
from sleuth.agents.roles.hybrid.reference_reasoner import (
    RESOLVE,
    RESOLVE_BY_REASONING,
    RESOLVE_CAREFUL,
    RESOLVE_PLAIN,
    Doubted,
    Reasoned,
    Resolved,
    ResolveInput,
)
from sleuth.agents.roles.hybrid.summarizer import SUMMARISE, SummariseInput, Summary

__all__ = [
    "CHOOSE_CALLS",
    "EXPRESS",
    "MAX_ENTITIES",
    "NAME_ENTITIES",
    "RECALL_UNAIDED",
    "RESOLVE",
    "RESOLVE_BY_REASONING",
    "RESOLVE_CAREFUL",
    "RESOLVE_PLAIN",
    "SUMMARISE",
    "Argument",
    "Asked",
    "Call",
    "Calls",
    "ChooseInput",
    "Doubted",
    "Entities",
    "Entity",
    "ExpressInput",
    "Expression",
    "Reasoned",
    "Recollection",
    "ResolveInput",
    "Resolved",
    "SummariseInput",
    "Summary",
]
