"""The knowledge graph of a whole collection, with Personalized PageRank over it (HippoRAG; PAR-RAG, section 3.3).

Names in triples are nodes. Two names are connected by each triple between them, and as synonyms. Passages are scored
by the names in their triples.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search.knowledge_graph.name_vectors import NameVectorFile, NameVectors
from sleuth.tools.search.knowledge_graph.triple_graph import TripleGraph
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.storage import Catalogue

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DAMPING = 0.5
"""Probability of following an edge instead of restarting (HippoRAG 2, section 4)."""
STEPS = 30
"""Number of iterations; the remaining error is below DAMPING to this power."""
MATCHES = 5
"""Names of the graph that a name of the query is matched to."""


@dataclass(frozen=True, slots=True)
class GraphRanking:
    """Passages with their scores, best first, and the share of each name in the walk."""

    passages: list[tuple[str, float]]
    shares: dict[int, float]


class NameGraph:
    """All names and triples of a collection; its methods block."""

    def __init__(self, triples: TripleGraph, vectors: NameVectors, embedder: Embedder) -> None:
        from scipy.sparse import csr_array

        self.triples = triples
        self._embedder = embedder
        self._vectors = vectors
        self._passages = triples.passages()
        row_of = {number: row for row, number in enumerate(vectors.names.tolist())}
        facts = [
            (at, row_of[fact.subject], row_of[fact.object])
            for at, id_ in enumerate(self._passages)
            for fact in triples.facts(id_)
        ]
        at, subjects, objects = np.array(facts, dtype=np.int64).reshape(-1, 3).T
        ends = np.stack([subjects, objects], axis=1)[subjects != objects]
        self._steps = transition_matrix(
            np.concatenate([ends, vectors.pairs.astype(np.int64)]),
            np.concatenate([np.ones(len(ends)), vectors.similarities.astype(np.float64)]),
            len(row_of),
        )
        counts = np.ones(2 * len(facts)), (np.tile(at, 2), np.concatenate([subjects, objects]))
        self._occurrences = csr_array(counts, shape=(len(self._passages), len(row_of)))
        self._occurrences.sum_duplicates()
        self._occurring_in = np.bincount(self._occurrences.indices, minlength=len(row_of))

    def names(self) -> int:
        """Return the number of names."""
        return len(self._vectors.names)

    def synonyms(self) -> int:
        """Return the number of pairs of synonyms."""
        return len(self._vectors.pairs)

    def rank(self, entities: Sequence[str]) -> GraphRanking:
        """Return the passages around the names that are most similar to the entities; none without entities or names.

        The walk restarts at each matched name in proportion to its similarity and inversely to the number of passages
        that have it (HippoRAG, section 2.3). A passage's score is the sum of the shares of its names, each as often as
        its triples have it.
        """
        start = self._start(entities)
        if not start.sum() > 0:
            return GraphRanking([], {})
        shares = stationary_shares(self._steps, start)
        scores = self._occurrences @ shares
        ranked = sorted(zip(self._passages, scores.tolist(), strict=True), key=lambda each: (-each[1], each[0]))
        found = [(id_, score) for id_, score in ranked if score > 0]
        return GraphRanking(found, dict(zip(self._vectors.names.tolist(), shares.tolist(), strict=True)))

    def _start(self, entities: Sequence[str]) -> NDArray[np.float64]:
        start = np.zeros(self.names())
        if not entities or not self.names():
            return start
        for alike in self._embedder.embed_passages(list(entities)) @ self._vectors.rows.T:
            best = np.lexsort((np.arange(len(alike)), -alike))[:MATCHES]
            start[best] += np.maximum(alike[best], 0.0) / self._occurring_in[best]
        return start


class NameGraphCache:
    """The graph of the present triples, made again if passages or triples have changed; its methods block."""

    def __init__(self, catalogue: Catalogue, file: Path, embedder: Embedder) -> None:
        """Set the catalogue and the file of the names' vectors."""
        self._catalogue = catalogue
        self._vectors = NameVectorFile(file, embedder)
        self._embedder = embedder
        self._turn = threading.Lock()
        self._made_at: tuple[int, int] | None = None
        self._graph: NameGraph | None = None

    def graph(self) -> NameGraph:
        """Return the graph; names that are new are embedded and compared first."""
        stored = self._catalogue.triple_stats()
        with self._turn:
            # Asked for before the triples: what comes in between is in the graph, and once more in the next.
            now = self._catalogue.head(), stored.change_counter()
            if self._graph is None or now != self._made_at:
                triples = TripleGraph(stored.triples())
                self._graph = NameGraph(triples, self._vectors.update(triples.names()), self._embedder)
                self._made_at = now
            return self._graph

    def prune(self) -> None:
        """Delete the stored vectors of names that no passage has any more."""
        if self._vectors.exists():
            self._vectors.prune(TripleGraph(self._catalogue.triple_stats().triples()).names())


def stationary_shares(step: "csr_array", start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of each node in a random walk along `step` that restarts according to `start`."""
    first: NDArray[np.float64] = start / start.sum()
    at = first
    for _ in range(STEPS):
        moved = DAMPING * (step @ at)
        at = moved + (1 - moved.sum()) * first
    return at


def transition_matrix(ends: NDArray[np.int64], weights: NDArray[np.float64], nodes: int) -> "csr_array":
    """Return the matrix whose columns distribute a node's share along its edges.

    Args:
        ends: nodes of the undirected edges, of shape (edges, 2); repeated edges add up.
        weights: weight of each edge.
        nodes: number of nodes.
    """
    from scipy.sparse import csr_array

    to, come_from = np.concatenate([ends, ends[:, ::-1]]).T
    both = np.tile(weights, 2)
    sums = np.bincount(come_from, weights=both, minlength=nodes)
    return csr_array((both / sums[come_from], (to, come_from)), shape=(nodes, nodes))
