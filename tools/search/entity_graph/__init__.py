"""The entity graph: passages are nodes, a passage that names what another one is about is an edge.

`index` stores the names in texts, `edges` finds edges, `search` ranks by them.
"""

from sleuth.tools.search.entity_graph.edges import Edge, Kind, QueryTerms
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.entity_graph.search import Candidate, find_candidates

__all__ = ["Candidate", "Edge", "GraphIndex", "Kind", "QueryTerms", "find_candidates"]
