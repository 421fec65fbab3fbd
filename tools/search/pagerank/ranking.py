"""Personalized PageRank: passages ranked by a random walk that restarts at the query's names, triples and passages."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from sleuth.tools.search.entity_graph import (
    RARE,
    SEEDS,
    SEEN,
    BaseScores,
    GraphIndex,
    Meaning,
    QueryTerms,
    find_base_scores,
    match_aliases,
)
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.pagerank.local_graph import WEIGHTS, LocalGraph, Node, Weights, build_local_graph, random_walk
from sleuth.tools.search.pagerank.triple_graph import Fact, TripleGraph
from sleuth.tools.search.retriever import Query
from sleuth.tools.text import find_phrases, number_mentions

FRONT = 10
"""Number of the best passages whose neighbors are added to the local graph."""
SHARPNESS = 8
"""Exponent of the passages' scores in the restart distribution, so that many weak ones do not outweigh few good."""
READ = 40
"""Number of the best passages whose triples are compared with the query."""
LINKED = 5
"""Number of triples whose names are in the restart distribution (HippoRAG 2, appendix)."""
PASSAGES, NAMES, FACTS = 1.0, 0.3, 1.0
"""Weights in the restart distribution: of passages, of each name in the query, and of names in triples."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WalkResult:
    """Result of a walk: passages with their scores, best first, and the data that explain them."""

    asked: QueryTerms
    ranked: Sequence[tuple[str, float]]
    base: Mapping[str, BaseScores]
    network: LocalGraph
    start: Mapping[Node, float]
    shares: Mapping[Node, float]


class PageRank:
    """A ranking of one collection's passages; all methods block."""

    def __init__(
        self,
        index: GraphIndex,
        keywords: KeywordIndex,
        triples: TripleGraph,
        meaning: Meaning | None = None,
        weights: Weights = WEIGHTS,
    ) -> None:
        """Set the indexes; `meaning` searches the vectors, if any."""
        self._weights = weights
        self._index = index
        self._keywords = keywords
        self._triples = triples
        self._meaning = meaning

    def rank(self, query: Query) -> WalkResult:
        """Return the passages around a query, ranked by the walk's stationary distribution."""
        asked = QueryTerms(" ".join([query.text, *query.entities]), self._keywords)
        base = find_base_scores(
            asked.text, query.entities, index=self._index, keywords=self._keywords, meaning=self._meaning
        )
        order = sorted(base, key=lambda id_: (-base[id_].s0, id_))
        strength = {id_: each.s0 for id_, each in base.items()}
        strength |= {id_: max(SEEN, strength.get(id_, 0.0)) for id_ in sorted(query.seen)[:SEEDS]}
        names = self._names([query.text, *query.entities])
        stating = self._stating(names)
        facts = self._linked(asked, dict.fromkeys([*order[:READ], *stating]))
        front = list(dict.fromkeys([*order[:FRONT], *sorted(query.seen)[:SEEDS]]))
        wanted = {*names, *(name for fact in facts for name in (fact.subject, fact.object))}
        pool = [*order, *stating]
        network = build_local_graph(
            self._index, self._triples, front=front, pool=pool, asked=wanted, weights=self._weights
        )
        there = {*network.passages, *(node for edge in network.edges for node in edge)}
        start = {node: weight for node, weight in self._start(strength, names, facts).items() if node in there}
        shares = random_walk(network.edges, start)
        ranked = sorted(((id_, shares.get(id_, 0.0)) for id_ in network.passages), key=lambda each: (-each[1], each[0]))
        return WalkResult(asked=asked, ranked=ranked, base=base, network=network, start=start, shares=shares)

    def _names(self, texts: Iterable[str]) -> dict[int, float]:
        """Return the names in the query that are an alias or occur in triples."""
        found: dict[int, float] = {}
        for text in texts:
            mentioned = number_mentions(find_phrases(text))
            for mention, known in match_aliases(self._index.known_as({each.name for each in mentioned}), mentioned):
                found[mention.name] = mention.sure / math.sqrt(len(known))
            stated = self._triples.with_name(mention.name for mention in mentioned)
            for name, passages in stated.items():
                found.setdefault(name, 1 / math.sqrt(len(passages)))
        return found

    def _stating(self, names: Iterable[int]) -> list[str]:
        """Return passages with triples about names in the query, even if keywords do not find them."""
        found = self._triples.with_name(names).values()
        return list(dict.fromkeys(id_ for ids in found if len(ids) <= RARE for id_ in ids))[:READ]

    def _linked(self, asked: QueryTerms, passages: Iterable[str]) -> dict[Fact, float]:
        """Return the triples that cover most of the query, with their shares."""
        shares: dict[Fact, float] = {}
        for id_ in passages:
            for fact in self._triples.facts(id_):
                if fact not in shares:
                    shares[fact] = asked.share(asked.found_in(" ".join(fact.triple)))
        best = nlargest(LINKED, shares, key=lambda fact: (shares[fact], fact))
        return {fact: shares[fact] for fact in best if shares[fact] > 0}

    def _start(
        self, strength: Mapping[str, float], names: Mapping[int, float], facts: Mapping[Fact, float]
    ) -> dict[Node, float]:
        """Return the restart distribution: names in many passages weigh less for each of them
        (HippoRAG, section 2.3).
        """
        sharp = {id_: value**SHARPNESS for id_, value in strength.items()}
        whole = sum(sharp.values()) or 1.0
        start: dict[Node, float] = {id_: PASSAGES * value / whole for id_, value in sharp.items()}
        linked: dict[int, float] = {}
        for fact, share in facts.items():
            for name, passages in self._triples.with_name((fact.subject, fact.object)).items():
                linked[name] = linked.get(name, 0.0) + share / len(passages)
        whole = sum(linked.values()) or 1.0
        for part, weight in ((names, NAMES), (linked, FACTS / whole)):
            for name, value in part.items():
                start[name] = start.get(name, 0.0) + weight * value
        return start
