"""Graph search: from a query to hits with explanations, ranked by boosted regression trees over features.

Features are defined once for training and for search. Each is a number that relates a question to a pool of candidates;
none is a word, name or id, so a trained model transfers to other collections. Shares are of the question's words,
weighted by idf. The trees are plain arrays that numpy evaluates.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search.entity_graph.edges import Edge, Kind, QueryTerms
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.entity_graph.search import Candidate, find_candidates
from sleuth.tools.search.index import Index, IndexName
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.retriever import Query
from sleuth.tools.search.vectors import VectorIndex
from sleuth.tools.types import Explanation, Hit, Passage, Reason

VERSION = 1
"""Raised whenever a feature comes, goes, or is computed differently; then the model is trained again."""
MODEL = Path(__file__).with_name("ranking.npz")
SPREAD = 30
"""Number of the best candidates that are reranked for coverage."""
COVER = 2.4
"""Bonus for covering all words of a question that earlier passages lack; trained scores span about 10."""
NEVER = -1.0
"""Position of an empty set of words."""

ARRAYS = ("roots", "feature", "threshold", "left", "right", "value")
"""Fields of `Trees` in the model's file, next to its metadata as JSON."""
_KINDS: tuple[Kind, ...] = get_args(Kind)
_LINK = ("gain", "w", "r", "nc", "s0", "links", "gains", "union", "seed", "asks", "rest", "sentence", "later")
_NO_LINK = dict.fromkeys(_LINK, 0.0)

MOST_REASONS = 3
"""Maximum number of reasons in an explanation; further ones seldom differ."""

_SHARED = ("kind", "source", "name", "stands_in", "start", "end", "gain")
"""What a reason has of its edge."""

Fetch = Callable[[Sequence[str]], list[Passage]]


def title_of(candidate: Candidate) -> str:
    """Return the key of passages with the same title; a passage without a title has its own."""
    return candidate.passage.title.casefold() or candidate.passage.id


@dataclass(slots=True)
class EdgeFeatures:
    """A passage's incoming and outgoing "names" edges within the pool."""

    inwards: float = 0.0
    outwards: int = 0
    best: float = 0.0


class Pool:
    """Values of a question and its candidates that all features share."""

    def __init__(self, asked: QueryTerms, candidates: Sequence[Candidate]) -> None:
        self._asked = asked
        self._places = {stem: at for at, stem in enumerate(asked.weights)}
        self._shares: dict[frozenset[str], float] = {}
        self.read = {each.passage.id: each.read for each in candidates}
        most = max((each.formula for each in candidates), default=0.0) or 1.0
        self.scores = {each.passage.id: each.formula / most for each in candidates}
        self.rank = {id_: at for at, id_ in enumerate(sorted(self.scores, key=lambda id_: (-self.scores[id_], id_)))}
        strength = {link.source: link.s0 for each in candidates for link in each.links}
        self.seeds = {id_: at for at, id_ in enumerate(sorted(strength, key=lambda id_: (-strength[id_], id_)))}
        named = [each for each in candidates if each.base.title > 0]
        # What is asked of the things that the question names: the words that are not in their names.
        self.asks = frozenset(asked.weights).difference(*(each.read.title for each in named))
        self.whole = self.share(self.asks) or 1.0
        self.namesakes = Counter(title_of(each) for each in candidates)
        self.better = self._better(candidates)
        self.ways = self._ways(candidates)
        self.question = self._question(candidates, named)

    def share(self, stems: frozenset[str]) -> float:
        """Return the share of the question that these stems cover, from 0 to 1."""
        cached = self._shares.get(stems)
        if cached is None:
            cached = self._shares[stems] = self._asked.share(stems)
        return cached

    def place(self, stems: frozenset[str]) -> float:
        """Return the mean position of these words in the question, from 0 to 1."""
        weights = {self._places[stem]: self._asked.weights[stem] for stem in stems}
        if not (total := math.fsum(weights.values())):
            return NEVER
        mean = math.fsum(at * weight for at, weight in weights.items()) / total
        return mean / max(1, len(self._places) - 1)

    def _better(self, candidates: Sequence[Candidate]) -> Mapping[str, int]:
        """Return the number of passages with the same title and a higher score."""
        before: Counter[str] = Counter()
        better = {}
        for each in sorted(candidates, key=lambda each: self.rank[each.passage.id]):
            better[each.passage.id] = before[title_of(each)]
            before[title_of(each)] += 1
        return better

    def _ways(self, candidates: Sequence[Candidate]) -> Mapping[str, EdgeFeatures]:
        ways: dict[str, EdgeFeatures] = defaultdict(EdgeFeatures)
        for each in candidates:
            for link in each.links:
                if link.kind == "names":
                    ways[each.passage.id].inwards += link.w
                    source = ways[link.source]
                    source.outwards += 1
                    value = link.w * (0.2 + link.nc) * (0.3 + self.scores[each.passage.id])
                    source.best = max(source.best, value)
        return ways

    def _question(self, candidates: Sequence[Candidate], named: Sequence[Candidate]) -> dict[str, float]:
        best = [*sorted((each.base.s0 for each in candidates), reverse=True), *[0.0] * 5]
        return {
            "question_words": len(self._places),
            "question_second": best[1],
            "question_fifth": best[4],
            "question_names": 1 - self.share(self.asks),
            "question_named": len(named),
            "question_best_name": max((each.base.title for each in named), default=0.0),
            "question_pool": len(candidates),
        }


def matrix(asked: QueryTerms, candidates: Sequence[Candidate]) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Return one row per candidate, and the names of the columns."""
    rows = list(features(asked, candidates))
    names = tuple(rows[0]) if rows else ()
    return np.array([list(row.values()) for row in rows], dtype=np.float32), names


def features(asked: QueryTerms, candidates: Sequence[Candidate]) -> Iterator[Mapping[str, float]]:
    """Yield the features of each candidate, in their order."""
    pool = Pool(asked, candidates)
    for candidate in candidates:
        row = _alone(pool, candidate) | _in_pool(pool, candidate)
        for kind in _KINDS:
            links = [link for link in candidate.links if link.kind == kind]
            linked = _linked(pool, candidate, links) if links else _NO_LINK
            row |= {f"{kind}_{name}": value for name, value in linked.items()}
        yield row | pool.question


def _alone(pool: Pool, candidate: Candidate) -> dict[str, float]:
    """Return features of the passage's own match with the question."""
    base, read, share = candidate.base, candidate.read, pool.share
    sentences = [stems for _, stems in read.sentences] or [read.title]
    return {
        "words": base.words,
        "words_rank": 1 / base.words_rank if base.words_rank else 0.0,
        "title": base.title,
        "entities": base.entities,
        "s0": base.s0,
        "all": share(read.found),
        "best_with_title": max(share(each | read.title) for each in sentences),
        "best_sentence": max(map(share, sentences)),
        "first_sentence": share(sentences[0]),
        "in_title": share(read.title),
        "of_title": len(read.title) / max(1, len(candidate.passage.title.split())),
        "asked": share(read.found & pool.asks) / pool.whole,
        "asked_sentence": max(share(each & pool.asks) for each in sentences) / pool.whole,
        "place": pool.place(read.found - read.title),
        "length": math.log1p(len(candidate.passage.text)),
        "sentences": len(sentences),
    }


def _in_pool(pool: Pool, candidate: Candidate) -> dict[str, float]:
    """Return features of the passage relative to the other candidates."""
    id_ = candidate.passage.id
    ways = pool.ways[id_]
    return {
        "formula": pool.scores[id_],
        "formula_rank": 1 / (1 + pool.rank[id_]),
        "seed": pool.seeds.get(id_, len(pool.seeds)),
        "named_in_pool": ways.inwards,
        "names_in_pool": ways.outwards,
        "best_named": ways.best,
        "namesakes": pool.namesakes[title_of(candidate)],
        "better_namesakes": pool.better[id_],
        "links": len(candidate.links),
        "sources": len({link.source for link in candidate.links}),
    }


def _linked(pool: Pool, candidate: Candidate, links: Sequence[Edge]) -> dict[str, float]:
    """Return features of the best edge of one kind, and the combined coverage of the edge's two ends."""
    edge, share, target, source = links[0], pool.share, candidate.read, pool.read[links[0].source]
    of_target = [stems for _, stems in target.sentences]
    sentences = pool.read[edge.stands_in].sentences
    sentence = next((stems for (start, _), stems in sentences if start == edge.start), frozenset[str]())
    return {
        "gain": edge.gain,
        "w": edge.w,
        "r": edge.r,
        "nc": edge.nc,
        "s0": edge.s0,
        "links": len(links),
        "gains": sum(link.gain for link in links),
        "union": share(source.found | target.found),
        "seed": pool.seeds[edge.source],
        "asks": share((sentence & pool.asks) - source.title) / pool.whole,
        "rest": share((target.found & pool.asks) - sentence) / pool.whole,
        "sentence": max((share(each - source.found) for each in of_target), default=0.0),
        "later": pool.place(target.found - source.found) - pool.place(sentence),
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Trees:
    """An ensemble: a row's score is the sum of the values of the leaves that it reaches, one in each tree.

    All nodes of all trees are in one list; `roots` has the start of each tree. At a node a row goes left if its feature
    is at most the threshold. A leaf points to itself. meta: the file's metadata.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    meta: Mapping[str, Any]

    def scores(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return one score per row of features; higher is better, comparable only within one question."""
        at = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        line = np.arange(len(rows))[:, None]
        while True:
            goes_left = rows[line, self.feature[at]] <= self.threshold[at]
            following = np.where(goes_left, self.left[at], self.right[at])
            if np.array_equal(following, at):
                return np.asarray(self.value[at].sum(axis=1, dtype=np.float64))
            at = following


@lru_cache(maxsize=4)
def load(file: Path = MODEL) -> Trees:
    """Return the cached model, loaded without unpickling."""
    with np.load(file, allow_pickle=False) as arrays:
        meta = json.loads(arrays["meta"].tobytes())
        return Trees(meta=meta, **{name: arrays[name] for name in ARRAYS})


def rank(asked: QueryTerms, candidates: Sequence[Candidate], trees: Trees) -> list[Candidate]:
    """Return the candidates with trained scores, best first; new coverage of the question raises a candidate."""
    if not candidates:
        return []
    rows, _ = matrix(asked, candidates)
    for candidate, score in zip(candidates, trees.scores(rows), strict=True):
        candidate.score = float(score)
    ranked = sorted(candidates, key=lambda each: (-each.score, each.passage.id))
    return [*_spread(asked, ranked[:SPREAD]), *ranked[SPREAD:]]


def _spread(asked: QueryTerms, ranked: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield candidates greedily, by score and by the terms of the question that earlier ones lack."""
    left, missing = list(ranked), frozenset(asked.weights)
    while left:
        gains = {each.passage.id: COVER * asked.share(each.read.found & missing) for each in left}
        best = min(left, key=lambda each: (-each.score - gains[each.passage.id], each.passage.id))
        left.remove(best)
        missing -= best.read.found
        best.score += gains[best.passage.id]
        yield best


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
    asked, candidates = find_candidates(query, graph, keywords, fetch, meaning)
    ranked = candidates if model is None or query.hop else rank(asked, candidates, load(model))
    unseen_first = sorted(ranked, key=lambda candidate: candidate.passage.id in query.seen)
    texts = {candidate.passage.id: candidate.passage.text for candidate in candidates}
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
