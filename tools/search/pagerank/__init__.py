"""Personalized PageRank: a scorer of graph search (HippoRAG 2), and search in a whole knowledge graph (HippoRAG)."""

from sleuth.tools.search.pagerank.knowledge_graph import KnowledgeGraph, KnowledgeGraphCache
from sleuth.tools.search.pagerank.local_graph import DAMPING, Node, Weights
from sleuth.tools.search.pagerank.ranking import PageRank, WalkResult
from sleuth.tools.search.pagerank.triple_graph import Fact, TripleCache, TripleGraph

__all__ = [
    "DAMPING",
    "Fact",
    "KnowledgeGraph",
    "KnowledgeGraphCache",
    "Node",
    "PageRank",
    "TripleCache",
    "TripleGraph",
    "WalkResult",
    "Weights",
]
