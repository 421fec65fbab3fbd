"""Search in vectors and a knowledge graph: dense search merged with PageRank over triples (PAR-RAG, section 3.3).

The graph is that of a whole collection (HippoRAG). Names in triples are nodes. Two names are connected by each triple
between them, and as synonyms. Passages are scored by the names in their triples.
"""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search.index import Index, IndexName
from sleuth.tools.search.name_vectors import NameVectorFile, NameVectors
from sleuth.tools.search.ranking import MOST_REASONS, Fetch
from sleuth.tools.search.retriever import Query, Scored, fetch_depth, fuse
from sleuth.tools.search.vectors import Embedder, VectorIndex
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.text.names import find_mentions, kept_names, name_id
from sleuth.tools.text.tokenization import Span, name_key, sentence_spans
from sleuth.tools.types import Explanation, Hit, Passage, Reason, Triple

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DAMPING = 0.5
"""Probability of following an edge instead of restarting (HippoRAG 2, section 4)."""
STEPS = 30
"""Number of iterations; the remaining error is below DAMPING to this power."""
MATCHES = 5
"""Names of the graph that a name of the query is matched to."""


class Fact(NamedTuple):
    """A triple with the numbers of its subject and object, which are the same as in the entity graph."""

    triple: Triple
    subject: int
    object: int


class GraphRanking(NamedTuple):
    """Passages with their scores, best first, and the share of each name in the walk."""

    passages: Scored
    shares: dict[int, float]


def find_facts(triples: Mapping[str, Sequence[Triple]]) -> dict[str, list[Fact]]:
    """Return the facts in the triples of each passage, by its id; empty for a passage without any."""
    return {
        id_: [
            Fact(triple, name_id(subject), name_id(object_))
            for triple in those
            if (subject := name_key(triple[0])) and (object_ := name_key(triple[2]))
        ]
        for id_, those in triples.items()
    }


def names_in(facts: Mapping[str, Sequence[Fact]]) -> dict[int, str]:
    """Return the names in facts, normalized, by their numbers."""
    return {
        number: name_key(text)
        for those in facts.values()
        for fact in those
        for number, text in ((fact.subject, fact.triple[0]), (fact.object, fact.triple[2]))
    }


class NameGraph:
    """All names and triples of a collection; its methods block."""

    def __init__(self, facts: Mapping[str, Sequence[Fact]], vectors: NameVectors, embedder: Embedder) -> None:
        from scipy.sparse import csr_array

        self.facts = facts
        self._embedder = embedder
        self._vectors = vectors
        self._passages = sorted(facts)
        row_of = {number: row for row, number in enumerate(vectors.names.tolist())}
        rows = [
            (at, row_of[fact.subject], row_of[fact.object])
            for at, id_ in enumerate(self._passages)
            for fact in facts[id_]
        ]
        at, subjects, objects = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        ends = np.stack([subjects, objects], axis=1)[subjects != objects]
        self._steps = transition_matrix(
            np.concatenate([ends, vectors.pairs.astype(np.int64)]),
            np.concatenate([np.ones(len(ends)), vectors.similarities.astype(np.float64)]),
            len(row_of),
        )
        counts = np.ones(2 * len(rows)), (np.tile(at, 2), np.concatenate([subjects, objects]))
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
        scored = [(id_, score) for id_, score in ranked if score > 0]
        return GraphRanking(scored, dict(zip(self._vectors.names.tolist(), shares.tolist(), strict=True)))

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
        """Return the graph; embed new names and compare them first. Raise UsageError without an embedder."""
        stored = self._catalogue.triples()
        with self._turn:
            # Asked for before the triples: what comes in between is in the graph, and once more in the next.
            now = self._catalogue.head(), stored.change_counter()
            if self._graph is None or now != self._made_at:
                facts = find_facts(stored.all())
                self._graph = NameGraph(facts, self._vectors.update(names_in(facts)), self._embedder)
                self._made_at = now
            return self._graph

    def prune(self) -> None:
        """Delete the stored vectors of names that no passage has any more."""
        self._vectors.prune(names_in(find_facts(self._catalogue.triples().all())))


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


def search_knowledge_graph(
    query: Query,
    indexes: Mapping[IndexName, Index],
    fetch: Fetch,
    graph: NameGraph,
    *,
    passages: int,
    allowed: Collection[str] | None = None,
) -> list[Hit]:
    """Return the best passages of dense search and of the knowledge graph, by reciprocal rank fusion. Blocks.

    The graph is searched from the entities of the query; without any, from the names in its text. `allowed`: the
    passages that may be found, all if None. Explanations have a note if the graph lacks triples of some of the
    collection's `passages`.
    """
    vectors, depth, note = indexes["dense"], fetch_depth(query.k), _coverage_note(graph, passages)
    assert isinstance(vectors, VectorIndex)
    walked = graph.rank(query.entities or kept_names(query.text))
    of_graph = (each for each in walked.passages if allowed is None or each[0] in allowed)
    alone, edges = (dict(fuse([found])) for found in (vectors.search(query.text, depth), [*islice(of_graph, depth)]))
    scores = {id_: alone.get(id_, 0.0) + edges.get(id_, 0.0) for id_ in {**alone, **edges}}
    best = sorted(scores, key=lambda id_: (-scores[id_], id_))[: query.k]
    hits = []
    for rank, passage in enumerate(fetch(best), start=1):
        parts = {"alone": alone.get(passage.id, 0.0), "edges": edges.get(passage.id, 0.0)}
        why = Explanation(parts=parts, reasons=tuple(_reasons(passage, graph, walked.shares)), note=note)
        hits.append(Hit(passage=passage, score=scores[passage.id], rank=rank, why=why))
    return hits


def _reasons(passage: Passage, graph: NameGraph, shares: Mapping[int, float]) -> Iterator[Reason]:
    """Yield the triples of the passage whose names have the largest shares in the walk."""
    gains = {
        fact: shares.get(fact.subject, 0.0) + shares.get(fact.object, 0.0) for fact in graph.facts.get(passage.id, ())
    }
    for fact in sorted(gains, key=lambda fact: (-gains[fact], fact))[:MOST_REASONS]:
        name = max((fact.subject, fact.object), key=lambda name: shares.get(name, 0.0))
        start, end = _sentence_with(passage.text, name, fact)
        if gains[fact] > 0:
            yield Reason(
                kind="states",
                source="",
                name=" – ".join(fact.triple),
                stands_in=passage.id,
                start=start,
                end=end,
                sentence=passage.text[start:end],
                gain=gains[fact],
            )


def _sentence_with(text: str, name: int, fact: Fact) -> Span:
    """Return the sentence that mentions a name of the fact, or else has its words; the first one if none has."""
    spans = sentence_spans(text)
    starts = (mention.start for mention in find_mentions(text) if name_id(mention.name) == name)
    written = fact.triple[0] if fact.subject == name else fact.triple[2]
    at = next(starts, None)
    if at is None:
        at = text.casefold().find(written.casefold())
    return next((span for span in spans if span[0] <= at < span[1]), spans[0] if spans else (0, 0))


def _coverage_note(graph: NameGraph, passages: int) -> str:
    """Return a warning if the knowledge graph does not have the triples of all passages."""
    covered = len(graph.facts)
    if not graph.names():
        return "The knowledge graph is empty, so only vectors were searched: run `sleuth triples read` to build it."
    if covered < passages:
        more = "run `sleuth triples read` to complete it"
        return f"The knowledge graph covers {covered:,} of {passages:,} passages: {more}."
    return ""
