"""Search in a whole knowledge graph with Personalized PageRank (HippoRAG)."""

from sleuth.tools.search.knowledge_graph.graph import NameGraph, NameGraphCache
from sleuth.tools.search.knowledge_graph.triple_graph import Fact

__all__ = ["Fact", "NameGraph", "NameGraphCache"]
