"""CRP-RAG: reasoning over a graph of sub-questions."""
