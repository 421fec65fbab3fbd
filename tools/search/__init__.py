"""Retrieval: keyword, dense, hybrid and graph search."""

from sleuth.tools.search.retriever import GRAPH_MODES, DocumentLister, DocumentReader, Mode, Query, Retriever, find_mode

__all__ = ["GRAPH_MODES", "DocumentLister", "DocumentReader", "Mode", "Query", "Retriever", "find_mode"]
