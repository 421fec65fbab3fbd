"""The triple graph in memory, as new as the catalogue."""

import threading

from sleuth.tools.search.pagerank.triple_graph import TripleGraph
from sleuth.tools.storage import Catalogue


class TripleCache:
    """Makes the graph when it is first needed, and anew when passages or triples have changed; its methods block."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._turn = threading.Lock()
        self._made_at: tuple[int, int] | None = None
        self._graph = TripleGraph({})

    def graph(self) -> TripleGraph:
        """The graph of the triples that there are now."""
        readings = self._catalogue.triple_stats()
        with self._turn:
            # Asked for before the triples: what comes in between is in the graph, and once more in the next.
            now = self._catalogue.head(), readings.change_counter()
            if now != self._made_at:
                self._graph, self._made_at = TripleGraph(readings.triples()), now
            return self._graph
