"""Structured knowledge behind one interface: functions with schemas, answered by a file or a server."""

from sleuth.tools.sources.knowledge_graph.backends import graph_at, is_url
from sleuth.tools.sources.knowledge_graph.functions import FUNCTIONS
from sleuth.tools.sources.knowledge_graph.lookups import KnowledgeGraph, Lookup, look_up
from sleuth.tools.sources.knowledge_graph.rules import KINDS, Named, explore, tidy

__all__ = [
    "FUNCTIONS",
    "KINDS",
    "KnowledgeGraph",
    "Lookup",
    "Named",
    "explore",
    "graph_at",
    "is_url",
    "look_up",
    "tidy",
]
