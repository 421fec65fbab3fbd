"""Search over the entity graph: passages found by keywords and vectors, and those one mention away."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from sleuth.tools.search.entity_graph.edges import (
    Edge,
    Kind,
    MatchedPassage,
    QueryTerms,
    ReverseEdge,
    Seed,
    SeedNames,
    find_alias_edges,
    find_reverse_edges,
    find_shared_name_edges,
    match_aliases,
)
from sleuth.tools.search.entity_graph.index import RARE, GraphIndex
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.retriever import Query, Scored
from sleuth.tools.text.names import find_phrases, number_mentions
from sleuth.tools.text.tokenization import name_key
from sleuth.tools.types import Passage

Meaning = Callable[[str, int], Scored]

DEPTH = 300
"""Number of passages fetched by keywords and by vectors."""
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
class Weights:
    """Weights of the signals, relative to the best BM25 score.

    meaning: relative to the best cosine; title: bonus of a passage named by the question;
    entities: bonus of a passage that mentions a known name; edges: factor for all edges; coverage: bonus of a passage
    with all of the question's terms.
    """

    meaning: float = 1.0
    title: float = 1.0
    entities: float = 0.5
    edges: float = 1.0
    coverage: float = 0.0


QUESTION = Weights()
"""For a question whose answer may take several passages."""
HOP = Weights(meaning=0.5, title=0.5, entities=0.5, edges=0.2, coverage=0.5)
"""For a step that one passage should answer, tuned on MuSiQue's sub-questions (`docs/benchmarks/retrieval.md`)."""


@dataclass(kw_only=True, slots=True)
class BaseScores:
    """Components of a passage's own score.

    words: BM25 relative to the best passage;
    meaning: cosine scaled between the last and the best passage fetched; both 0 if it was not found this way. title:
    certainty that the question, or a known name, names the passage.
    entities: 1 if it mentions a known name.
    s0: their weighted sum, relative to the best passage.
    """

    words: float = 0.0
    meaning: float = 0.0
    title: float = 0.0
    entities: float = 0.0
    words_rank: int | None = None
    s0: float = 0.0

    def parts(self) -> dict[str, float]:
        """Return the components by their names in explanations."""
        return {"words": self.words, "meaning": self.meaning, "title": self.title, "entities": self.entities}


def find_base_scores(
    text: str,
    entities: Sequence[str],
    *,
    index: GraphIndex,
    keywords: KeywordIndex,
    meaning: Meaning | None,
    weights: Weights = QUESTION,
) -> dict[str, BaseScores]:
    """Return base scores of all passages found by a question and the known names."""
    words = keywords.search(text, DEPTH)
    base = {id_: BaseScores(words=score / words[0][1], words_rank=rank) for rank, (id_, score) in enumerate(words, 1)}
    near = meaning(text, DEPTH) if meaning is not None else []
    for id_, cosine in near:
        low, high = near[-1][1], near[0][1]
        base.setdefault(id_, BaseScores()).meaning = (cosine - low) / (high - low) if high > low else 1.0
    _add_titles(base, [text, *entities], index)
    _add_mentions(base, entities, index)
    for each in base.values():
        own = each.words + weights.meaning * each.meaning
        each.s0 = own + weights.title * each.title + weights.entities * each.entities
    most = max((each.s0 for each in base.values()), default=0.0)
    for each in base.values():
        each.s0 = each.s0 / most if most else 0.0
    return base


def _add_titles(base: dict[str, BaseScores], texts: Iterable[str], index: GraphIndex) -> None:
    """Add alias weight / √(passages with the alias), for the longest names in the texts."""
    every = [number_mentions(find_phrases(text)) for text in texts]
    by_name = index.known_as({mention.name for mentions in every for mention in mentions})
    for mentions in every:
        for mention, aliases in match_aliases(by_name, mentions):
            for alias in aliases:
                each = base.setdefault(alias.passage, BaseScores())
                each.title = max(each.title, mention.sure * alias.weight / math.sqrt(alias.sharing))


def _add_mentions(base: dict[str, BaseScores], entities: Sequence[str], index: GraphIndex) -> None:
    names = [name for entity in entities if (name := name_key(entity))]
    few = index.mentioning(names, at_most=RARE)
    many = index.mentioning_among([name for name in names if name not in few], list(base))
    for ids in (few | many).values():
        for id_ in ids:
            base.setdefault(id_, BaseScores()).entities = 1.0


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
    links: list[Edge] = field(default_factory=list)
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

    seen = nlargest(SEEDS, sorted(query.seen), key=lambda id_: (_s0(base, id_), id_))
    strength = {id_: base[id_].s0 for id_ in order[:SEEDS]} | {id_: max(SEEN, _s0(base, id_)) for id_ in seen}
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
    candidates = [
        Candidate(passage=each.passage, read=each, base=base.get(id_, BaseScores()), coverage=asked.share(each.found))
        for id_, each in read.items()
    ]
    _link(candidates, edges, read, asked, weights)
    return asked, sorted(candidates, key=lambda candidate: (-candidate.score, candidate.passage.id))


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
    all_candidates: Iterable[Candidate],
    edges: Iterable[Edge],
    read: Mapping[str, MatchedPassage],
    asked: QueryTerms,
    weights: Weights,
) -> None:
    """Add links and scores to candidates: s0(c) + the best kind of edge + half of the other kinds.

    An edge contributes λ·s0(p)²·w·r·(a + 1.7·nc); of each kind the best edge counts. For a hop edges contribute less,
    and coverage of the question adds to the score.
    """
    candidates = {candidate.passage.id: candidate for candidate in all_candidates}
    for edge in edges:
        if edge.target in candidates:
            edge.nc = asked.share(read[edge.target].found - read[edge.source].found)
            edge.gain = weights.edges * LAMBDA[edge.kind] * edge.s0**2 * edge.w * edge.r
            edge.gain *= AT_LEAST[edge.kind] + NEW_WORDS * edge.nc
            candidates[edge.target].links.append(edge)
    for candidate in candidates.values():
        candidate.links.sort(key=lambda link: (-link.gain, link.kind, link.source, link.name))
        candidate.score = candidate.formula + weights.coverage * candidate.coverage


def _gain(links: Sequence[Edge]) -> float:
    """Return the gain of all links: the best kind of edge and a part of the others; per kind only the best link
    counts.
    """
    of_kind: dict[Kind, float] = {}
    for link in links:  # the best first
        of_kind.setdefault(link.kind, link.gain)
    best = max(of_kind.values(), default=0.0)
    return best + OTHER_KINDS * (sum(of_kind.values()) - best)
