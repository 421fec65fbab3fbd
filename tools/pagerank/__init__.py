"""Personalized PageRank over passages, names and triples (HippoRAG 2), as another scorer of graph search."""
