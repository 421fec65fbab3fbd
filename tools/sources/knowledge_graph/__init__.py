"""Structured knowledge behind one interface: functions with schemas, answered by a file or a server."""

from sleuth.tools.sources.knowledge_graph.backends import is_url, open_graph
from sleuth.tools.sources.knowledge_graph.functions import known_functions
from sleuth.tools.sources.knowledge_graph.lookups import KnowledgeGraph, look_up
from sleuth.tools.sources.knowledge_graph.rules import KINDS, NamedEntity, deduplicate, explore

__all__ = [
    "KINDS",
    "KnowledgeGraph",
    "NamedEntity",
    "deduplicate",
    "explore",
    "is_url",
    "known_functions",
    "look_up",
    "open_graph",
]
