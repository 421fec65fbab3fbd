"""Search over the entity graph: passages found by keywords and vectors, and those one mention away."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from sleuth.tools.search.entity_graph.base_scores import (
    DEPTH,
    HOP,
    QUESTION,
    BaseScores,
    Meaning,
    Weights,
    find_base_scores,
)
from sleuth.tools.search.entity_graph.edges import (
    Edge,
    Kind,
    MatchedPassage,
    ReverseEdge,
    Seed,
    SeedNames,
    find_alias_edges,
    find_reverse_edges,
    find_shared_name_edges,
)
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.entity_graph.query_terms import QueryTerms
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.retriever import Query
from sleuth.tools.types import Passage

SEEDS = 8
"""Number of the best passages, and of those already read, whose edges are followed."""
SEEN = 0.5
"""Minimum score of a passage already read as a seed."""
POOL: Mapping[Kind, int] = {"names": 60, "named_by": 40, "shares": 40}
POOL_BASE = 40
"""Number of candidates by each kind of edge, and by their own score."""
LAMBDA: Mapping[Kind, float] = {"names": 0.6, "named_by": 0.7, "shares": 0.85}
AT_LEAST: Mapping[Kind, float] = {"names": 1.0, "named_by": 0.1, "shares": 0.1}
NEW_WORDS = 1.7
OTHER_KINDS = 0.5
"""Constants of the formula, tuned on questions of 2Wiki, HotpotQA and MuSiQue (`sleuth eval --retrieval graph`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """An edge with values that depend on the target's text.

    nc: the share of the question's terms, by idf, that the target has and the source lacks. gain: the edge's
    contribution to the target's score in the untrained formula.
    """

    edge: Edge
    nc: float
    gain: float


@dataclass(kw_only=True, slots=True)
class Candidate:
    """A passage in the pool, with all components of its score.

    read: its match with the question; coverage: the share of the question, by idf, that it covers. links: its incoming
    edges, best first. score: by the untrained formula, or by the ranker.
    """

    passage: Passage
    read: MatchedPassage = field(repr=False, compare=False)
    base: BaseScores
    coverage: float
    links: list[Link] = field(default_factory=list)
    score: float = 0.0

    @property
    def formula(self) -> float:
        """The untrained score: its own and what the best edges add."""
        return self.base.s0 + _gain(self.links)


def find_candidates(
    query: Query,
    index: GraphIndex,
    keywords: KeywordIndex,
    fetch: Callable[[Sequence[str]], list[Passage]],
    meaning: Meaning | None = None,
) -> tuple[QueryTerms, list[Candidate]]:
    """Return the question and its pool of about 100 passages, best first by the untrained formula; blocks.

    Args:
        query: its text, known names, and the passages seen before, which are in the pool like any other.
        index: the names in the passages.
        keywords: the keyword index.
        fetch: returns passages by id.
        meaning: searches the vectors, if there are any.
    """
    weights = HOP if query.hop else QUESTION
    whole = " ".join([query.text, *(name for name in query.entities if name.casefold() not in query.text.casefold())])
    asked = QueryTerms(whole, keywords)
    base = find_base_scores(whole, query.entities, index=index, keywords=keywords, meaning=meaning, weights=weights)
    order = sorted(base, key=lambda id_: (-base[id_].s0, id_))
    read: dict[str, MatchedPassage] = {}

    def match(ids: Iterable[str]) -> None:
        for passage in fetch([id_ for id_ in ids if id_ not in read]):
            read[passage.id] = MatchedPassage(passage, asked)

    strength = _seed_scores(order, base, sorted(query.seen))
    match(strength)
    seeds = [Seed(passage=read[id_].passage, s0=s0) for id_, s0 in strength.items() if id_ in read]
    names = SeedNames(index, seeds, order[:DEPTH])
    passages = index.count()
    edges: list[Edge] = []
    backward: list[ReverseEdge] = []
    for seed in seeds:
        of_seed = read[seed.passage.id]
        edges += find_alias_edges(names, seed, of_seed)
        edges += find_shared_name_edges(names, seed, of_seed, asked, passages)
        backward += find_reverse_edges(names, seed)
    match(_pool(order, edges, backward, base))
    edges += [edge for way in backward if way.target in read and (edge := way.seen_in(read[way.target]))]
    found = [
        Candidate(passage=each.passage, read=each, base=base.get(id_, BaseScores()), coverage=asked.share(each.found))
        for id_, each in read.items()
    ]
    _link(found, edges, read, asked, weights)
    return asked, sorted(found, key=lambda candidate: (-candidate.score, candidate.passage.id))


def _seed_scores(order: Sequence[str], base: Mapping[str, BaseScores], seen: Sequence[str]) -> dict[str, float]:
    known = nlargest(SEEDS, seen, key=lambda id_: (_s0(base, id_), id_))
    return {id_: base[id_].s0 for id_ in order[:SEEDS]} | {id_: max(SEEN, _s0(base, id_)) for id_ in known}


def _pool(
    order: Sequence[str], edges: Sequence[Edge], backward: Sequence[ReverseEdge], base: Mapping[str, BaseScores]
) -> list[str]:
    """Return the ids whose texts are read: the best by their own score and the best by each kind of edge."""
    promise: dict[Kind, dict[str, float]] = {kind: {} for kind in POOL}
    # What has something of the question by itself is likelier to have what is missing.
    for edge in edges:
        _raise(promise[edge.kind], edge.target, edge.s0**2 * edge.w * edge.r + 0.1 * _s0(base, edge.target))
    for way in backward:
        _raise(promise["named_by"], way.target, way.seed.s0**2 * way.w + _s0(base, way.target))
    chosen = list(order[:POOL_BASE])
    for kind, values in promise.items():
        chosen += nlargest(POOL[kind], values, key=lambda id_: (values[id_], id_))
    return list(dict.fromkeys(chosen))


def _raise(values: dict[str, float], id_: str, value: float) -> None:
    values[id_] = max(value, values.get(id_, 0.0))


def _s0(base: Mapping[str, BaseScores], id_: str) -> float:
    return base[id_].s0 if id_ in base else 0.0


def _link(
    found: Iterable[Candidate],
    edges: Iterable[Edge],
    read: Mapping[str, MatchedPassage],
    asked: QueryTerms,
    weights: Weights,
) -> None:
    """Add links and scores to candidates: s0(c) + the best kind of edge + half of the other kinds.

    An edge contributes λ·s0(p)²·w·r·(a + 1.7·nc); of each kind the best edge counts. For a hop edges contribute less,
    and coverage of the question adds to the score.
    """
    candidates = {candidate.passage.id: candidate for candidate in found}
    for edge in edges:
        if edge.target in candidates:
            nc = asked.share(read[edge.target].found - read[edge.source].found)
            gain = weights.edges * LAMBDA[edge.kind] * edge.s0**2 * edge.w * edge.r
            gain *= AT_LEAST[edge.kind] + NEW_WORDS * nc
            candidates[edge.target].links.append(Link(edge=edge, nc=nc, gain=gain))
    for candidate in candidates.values():
        candidate.links.sort(key=lambda link: (-link.gain, link.edge.kind, link.edge.source, link.edge.name))
        candidate.score = candidate.formula + weights.coverage * candidate.coverage


def _gain(links: Sequence[Link]) -> float:
    """Return the gain of all links: the best kind of edge and a part of the others; per kind only the best link
    counts.
    """
    of_kind: dict[Kind, float] = {}
    for link in links:  # the best first
        of_kind.setdefault(link.edge.kind, link.gain)
    best = max(of_kind.values(), default=0.0)
    return best + OTHER_KINDS * (sum(of_kind.values()) - best)
