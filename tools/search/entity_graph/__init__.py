"""The mention graph: passages are nodes, a passage that names what another one is about is an edge.

`names` and `spans` read names out of texts, `index` keeps them, `edges` finds edges, `search` ranks by them.
"""

from sleuth.tools.search.entity_graph.base_scores import BaseScores, Meaning, Signals
from sleuth.tools.search.entity_graph.edges import Edge, Kind, match_aliases
from sleuth.tools.search.entity_graph.index import RARE, GraphIndex, PassageNames
from sleuth.tools.search.entity_graph.names import FUNCTION_WORDS, find_mentions, find_phrases, name_id, number_mentions
from sleuth.tools.search.entity_graph.query_terms import QueryTerms
from sleuth.tools.search.entity_graph.search import SEEDS, SEEN, Candidate, EntityGraphSearch, Link
from sleuth.tools.search.entity_graph.tokenization import Word, name_key, sentence_spans, tokenize

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
    "Signals",
    "Word",
    "find_mentions",
    "find_phrases",
    "match_aliases",
    "name_id",
    "name_key",
    "number_mentions",
    "sentence_spans",
    "tokenize",
]
