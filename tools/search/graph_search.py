"""Graph search: from a query to hits with explanations."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sleuth.tools.search.entity_graph import Candidate, GraphIndex, find_candidates
from sleuth.tools.search.index import Index, IndexName
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.ranking import load, rank
from sleuth.tools.search.retriever import Query
from sleuth.tools.search.vectors import VectorIndex
from sleuth.tools.types import Explanation, Hit, Passage, Reason

MOST_REASONS = 3
"""Maximum number of reasons in an explanation; further ones seldom differ."""

_SHARED = ("kind", "source", "name", "stands_in", "start", "end", "gain")
"""What a reason has of its edge."""

Fetch = Callable[[Sequence[str]], list[Passage]]


def search_graph(
    query: Query, indexes: Mapping[IndexName, Index], fetch: Fetch, model: Path | None = None
) -> list[Hit]:
    """Return the best passages by the entity graph; passages seen before come last. Blocks.

    model: the trained ranker's file; without one the untrained formula ranks. It was trained on whole questions: for a
    hop the formula is better (`docs/benchmarks/retrieval.md`).
    """
    graph, keywords, vectors = indexes["graph"], indexes["keyword"], indexes.get("dense")
    assert isinstance(graph, GraphIndex)
    assert isinstance(keywords, KeywordIndex)
    meaning = vectors.search if isinstance(vectors, VectorIndex) else None
    asked, found = find_candidates(query, graph, keywords, fetch, meaning)
    ranked = found if model is None or query.hop else rank(asked, found, load(model))
    unseen_first = sorted(ranked, key=lambda candidate: candidate.passage.id in query.seen)
    texts = {candidate.passage.id: candidate.passage.text for candidate in found}
    return [
        Hit(passage=candidate.passage, score=candidate.score, rank=rank, why=_explain(candidate, texts))
        for rank, candidate in enumerate(unseen_first[: query.k], start=1)
    ]


def _explain(candidate: Candidate, texts: Mapping[str, str]) -> Explanation:
    own = candidate.base.s0
    parts = candidate.base.parts() | {"alone": own, "edges": candidate.formula - own, "coverage": candidate.coverage}
    best: dict[tuple[str, str], Reason] = {}
    for edge in candidate.links:
        if edge.gain > 0:
            values = {name: getattr(edge, name) for name in _SHARED}
            reason = Reason(**values, sentence=texts[edge.stands_in][edge.start : edge.end])
            best.setdefault((edge.kind, edge.source), reason)
    return Explanation(parts=parts, reasons=tuple(best.values())[:MOST_REASONS])
