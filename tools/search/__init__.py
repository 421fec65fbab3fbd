"""Retrieval: keyword, dense, hybrid and graph search."""

from sleuth.tools.search.graph_search import search_graph
from sleuth.tools.search.index import Index, IndexName
from sleuth.tools.search.keyword_index import KeywordIndex, MemoryKeywords
from sleuth.tools.search.knowledge_graph import search_knowledge_graph
from sleuth.tools.search.retriever import (
    GRAPH_MODES,
    MODES,
    DocumentLister,
    DocumentReader,
    FilteredRetriever,
    Mode,
    Query,
    Retriever,
    Scored,
    fetch_depth,
    find_mode,
    fuse,
)

__all__ = [
    "GRAPH_MODES",
    "MODES",
    "DocumentLister",
    "DocumentReader",
    "FilteredRetriever",
    "Index",
    "IndexName",
    "KeywordIndex",
    "MemoryKeywords",
    "Mode",
    "Query",
    "Retriever",
    "Scored",
    "fetch_depth",
    "find_mode",
    "fuse",
    "search_graph",
    "search_knowledge_graph",
]
