"""The entity graph: passages are nodes, a passage that names what another one is about is an edge.

`index` stores the names in texts, `edges` finds edges, `search` ranks by them.
"""

from sleuth.tools.search.entity_graph.base_scores import BaseScores, Meaning, find_base_scores
from sleuth.tools.search.entity_graph.edges import Edge, Kind, match_aliases
from sleuth.tools.search.entity_graph.index import RARE, GraphIndex
from sleuth.tools.search.entity_graph.query_terms import QueryTerms
from sleuth.tools.search.entity_graph.search import SEEDS, SEEN, Candidate, EntityGraphSearch, Link

__all__ = [
    "RARE",
    "SEEDS",
    "SEEN",
    "BaseScores",
    "Candidate",
    "Edge",
    "EntityGraphSearch",
    "GraphIndex",
    "Kind",
    "Link",
    "Meaning",
    "QueryTerms",
    "find_base_scores",
    "match_aliases",
]
