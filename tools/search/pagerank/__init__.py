"""Search in a whole knowledge graph with Personalized PageRank (HippoRAG)."""

from sleuth.tools.search.pagerank.knowledge_graph import KnowledgeGraph, KnowledgeGraphCache
from sleuth.tools.search.pagerank.triple_graph import Fact, TripleCache

__all__ = ["Fact", "KnowledgeGraph", "KnowledgeGraphCache", "TripleCache"]
