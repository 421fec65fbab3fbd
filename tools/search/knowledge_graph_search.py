"""Search in vectors and a knowledge graph: dense search merged with PageRank over triples (PAR-RAG, section 3.3)."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from sleuth.tools.search.graph_search import MOST_REASONS, Fetch
from sleuth.tools.search.index import Index, IndexName
from sleuth.tools.search.knowledge_graph import Fact, NameGraph
from sleuth.tools.search.retriever import Query, fetch_depth, fuse
from sleuth.tools.search.vectors import VectorIndex
from sleuth.tools.text import Span, find_mentions, kept_names, name_id, sentence_spans
from sleuth.tools.types import Explanation, Hit, Passage, Reason


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
        fact: shares.get(fact.subject, 0.0) + shares.get(fact.object, 0.0) for fact in graph.triples.facts(passage.id)
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
    covered = len(graph.triples.passages())
    if not graph.names():
        return "The knowledge graph is empty, so only vectors were searched: run `sleuth triples read` to build it."
    if covered < passages:
        more = "run `sleuth triples read` to complete it"
        return f"The knowledge graph covers {covered:,} of {passages:,} passages: {more}."
    return ""
