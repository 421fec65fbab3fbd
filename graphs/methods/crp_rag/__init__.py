"""CRP-RAG: reasoning over a graph of sub-questions."""

from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE

__all__ = ["SOURCE"]
