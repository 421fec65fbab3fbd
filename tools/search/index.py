"""The indexes that are derived from the catalogue, with the same methods for their synchronization."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from sleuth.tools.search.entity_graph import GraphIndex, Meaning
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.vectors import VectorIndex

IndexName = Literal["keyword", "graph", "dense"]
Index: TypeAlias = KeywordIndex | GraphIndex | VectorIndex


def graph_indexes(indexes: Mapping[IndexName, Index]) -> tuple[GraphIndex, KeywordIndex, Meaning | None]:
    """Return the indexes of graph search; instead of vectors, their search if there are any."""
    graph, keywords, vectors = indexes["graph"], indexes["keyword"], indexes.get("dense")
    assert isinstance(graph, GraphIndex)
    assert isinstance(keywords, KeywordIndex)
    return graph, keywords, vectors.search if isinstance(vectors, VectorIndex) else None
