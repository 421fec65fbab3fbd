"""Personalized PageRank over passages, names and triples (HippoRAG 2), as another scorer of graph search."""

from sleuth.tools.search.pagerank.local_graph import DAMPING, Node, Weights
from sleuth.tools.search.pagerank.ranking import PageRank, WalkResult
from sleuth.tools.search.pagerank.triple_graph import Fact, TripleCache, TripleGraph

__all__ = ["DAMPING", "Fact", "Node", "PageRank", "TripleCache", "TripleGraph", "WalkResult", "Weights"]
