"""The mention graph: passages are nodes, a passage that names what another one is about is an edge.

`tokenization` and `names` find names in texts, `index` stores them, `edges` finds edges, `search` ranks by them.
"""

from sleuth.tools.search.entity_graph.base_scores import BaseScores, Meaning, find_base_scores
from sleuth.tools.search.entity_graph.edges import Edge, Kind, match_aliases
from sleuth.tools.search.entity_graph.index import RARE, GraphIndex, PassageNames, find_names
from sleuth.tools.search.entity_graph.names import (
    FUNCTION_WORDS,
    find_mentions,
    find_phrases,
    kept_names,
    name_id,
    number_mentions,
)
from sleuth.tools.search.entity_graph.query_terms import QueryTerms
from sleuth.tools.search.entity_graph.search import SEEDS, SEEN, Candidate, EntityGraphSearch, Link
from sleuth.tools.search.entity_graph.tokenization import Word, name_key, tokenize

__all__ = [
    "FUNCTION_WORDS",
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
    "PassageNames",
    "QueryTerms",
    "Word",
    "find_base_scores",
    "find_mentions",
    "find_names",
    "find_phrases",
    "kept_names",
    "match_aliases",
    "name_id",
    "name_key",
    "number_mentions",
    "tokenize",
]
