"""Graph search by PageRank: hits with the names and triples that contribute to their scores."""

from collections.abc import Iterator, Mapping
from heapq import nlargest

from sleuth.tools.search.entity_graph import BaseScores
from sleuth.tools.search.graph_search import MOST_REASONS, Fetch
from sleuth.tools.search.index import Index, IndexName, graph_indexes
from sleuth.tools.search.pagerank import DAMPING, Fact, Node, PageRank, TripleGraph, WalkResult
from sleuth.tools.search.retriever import Query
from sleuth.tools.text import find_mentions, name_id, sentence_spans
from sleuth.tools.types import Explanation, Hit, Passage, Reason


def search_pagerank(query: Query, indexes: Mapping[IndexName, Index], fetch: Fetch, triples: TripleGraph) -> list[Hit]:
    """Return the best passages by Personalized PageRank; passages seen before come last. Blocks."""
    graph, keywords, meaning = graph_indexes(indexes)
    walked = PageRank(graph, keywords, triples, meaning).rank(query)
    unseen_first = sorted(walked.ranked, key=lambda each: each[0] in query.seen)
    scores = dict(unseen_first[: query.k])
    explained = _Explained(walked, triples)
    return [
        Hit(passage=passage, score=scores[passage.id], rank=rank, why=explained.why(passage))
        for rank, passage in enumerate(fetch(list(scores)), start=1)
    ]


class _Explained:
    """Explanations of the scores of a walk."""

    def __init__(self, walked: WalkResult, triples: TripleGraph) -> None:
        self._walked = walked
        self._triples = triples
        self._neighbours = walked.network.neighbours()
        self._sums = {node: sum(near.values()) for node, near in self._neighbours.items()}

    def why(self, passage: Passage) -> Explanation:
        """Return the passage's restart share, its share along names, and the names that contribute most."""
        parts = self._walked.base.get(passage.id, BaseScores()).parts()
        flows = list(self._inwards(passage.id))
        edges = sum(gain for _, gain in flows)
        parts |= {"alone": self._walked.shares.get(passage.id, 0.0) - edges, "edges": edges}
        best = nlargest(MOST_REASONS, flows, key=lambda flow: flow[1])
        reasons = (self._reason(passage, name, gain) for name, gain in best if gain > 0)
        return Explanation(parts=parts, reasons=tuple(filter(None, reasons)))

    def _inwards(self, node: Node) -> Iterator[tuple[Node, float]]:
        """Yield the contribution of each adjacent node."""
        for neighbor, weight in self._neighbours.get(node, {}).items():
            yield neighbor, DAMPING * self._walked.shares[neighbor] * weight / self._sums[neighbor]

    def _reason(self, passage: Passage, name: Node, gain: float) -> Reason | None:
        fact = self._fact(passage.id, name)
        text, (start, end) = name_in_text(passage, name, fact)
        if not text:
            return None
        return Reason(
            kind="states" if fact else "walks",
            source=self._source(passage.id, name),
            name=" – ".join(fact.triple) if fact else text,
            stands_in=passage.id,
            start=start,
            end=end,
            sentence=passage.text[start:end],
            gain=gain,
        )

    def _source(self, passage: str, name: Node) -> str:
        """Return the passage that contributes most to a name; empty if the query itself does."""
        flows = [(gain, node) for node, gain in self._inwards(name) if isinstance(node, str) and node != passage]
        own = (1 - DAMPING) * self._walked.start.get(name, 0.0) / (sum(self._walked.start.values()) or 1.0)
        gain, source = max(flows, default=(0.0, ""))
        return source if gain > own else ""

    def _fact(self, passage: str, name: Node) -> Fact | None:
        """Return the triple of a passage that has the name, and most of the query."""
        asked = self._walked.asked
        having = [fact for fact in self._triples.facts(passage) if name in (fact.subject, fact.object)]
        return max(having, key=lambda fact: asked.share(asked.found_in(" ".join(fact.triple))), default=None)


def name_in_text(passage: Passage, name: Node, fact: Fact | None) -> tuple[str, tuple[int, int]]:
    """Return a name as the passage writes it, and the sentence with it; the first one if only the title has it."""
    spans = sentence_spans(passage.text)
    first = spans[0] if spans else (0, 0)
    for mention in find_mentions(passage.text):
        if name_id(mention.name) == name:
            around = (span for span in spans if span[0] <= mention.start < span[1])
            return passage.text[mention.start : mention.end], next(around, first)
    if fact is None:
        return passage.title, first
    written = fact.triple[0] if fact.subject == name else fact.triple[2]
    at = passage.text.casefold().find(written.casefold())
    return written, next((span for span in spans if span[0] <= at < span[1]), first)
