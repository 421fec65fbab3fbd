"""The indexes that are derived from the catalogue, with the same methods for their synchronization."""

from typing import Literal, TypeAlias

from sleuth.tools.search.entity_graph import GraphIndex
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.vectors import VectorIndex

IndexName = Literal["keyword", "graph", "dense"]
Index: TypeAlias = KeywordIndex | GraphIndex | VectorIndex
