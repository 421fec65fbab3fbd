"""The entity graph: passages are nodes, a passage that names what another one is about is an edge.

`index` stores the names in texts, `edges` finds edges, `search` ranks by them.
"""

from sleuth.tools.search.entity_graph.edges import Edge, Kind
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.entity_graph.query_terms import QueryTerms
from sleuth.tools.search.entity_graph.search import Candidate, EntityGraphSearch, Link

__all__ = ["Candidate", "Edge", "EntityGraphSearch", "GraphIndex", "Kind", "Link", "QueryTerms"]
