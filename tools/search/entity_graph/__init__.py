"""The mention graph: passages are nodes, a passage that names what another one is about is an edge.

`names` and `spans` read names out of texts, `index` keeps them, `edges` finds edges, `search` ranks by them.
"""

from sleuth.tools.search.entity_graph.asked import Asked
from sleuth.tools.search.entity_graph.base import Base, Meaning, Signals
from sleuth.tools.search.entity_graph.edges import Edge, Kind, longest
from sleuth.tools.search.entity_graph.index import RARE, GraphIndex, Named
from sleuth.tools.search.entity_graph.names import FUNCTION_WORDS, mentions, name_id, numbered, phrases
from sleuth.tools.search.entity_graph.search import SEEDS, SEEN, Candidate, Link, MentionGraph
from sleuth.tools.search.entity_graph.spans import Word, key, sentences, words

__all__ = [
    "FUNCTION_WORDS",
    "RARE",
    "SEEDS",
    "SEEN",
    "Asked",
    "Base",
    "Candidate",
    "Edge",
    "GraphIndex",
    "Kind",
    "Link",
    "Meaning",
    "MentionGraph",
    "Named",
    "Signals",
    "Word",
    "key",
    "longest",
    "mentions",
    "name_id",
    "numbered",
    "phrases",
    "sentences",
    "words",
]
