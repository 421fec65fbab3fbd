"""Personalized PageRank over passages, names and triples (HippoRAG 2), as another scorer of graph search."""

from sleuth.tools.search.pagerank.network import Weights
from sleuth.tools.search.pagerank.ranking import PageRank, Walked
from sleuth.tools.search.pagerank.triple_graph import Fact, TripleCache, TripleGraph
from sleuth.tools.search.pagerank.walk import DAMPING, Node

__all__ = ["DAMPING", "Fact", "Node", "PageRank", "TripleCache", "TripleGraph", "Walked", "Weights"]
