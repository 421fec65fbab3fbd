"""Search over the mention graph: what words and meaning find, and what is one mention away from it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from sleuth.tools.documents import Passage
from sleuth.tools.keywords import KeywordIndex
from sleuth.tools.mention_graph.asked import Asked
from sleuth.tools.mention_graph.edges import Backward, Edge, Kind, Read, Seed, longest, named_by, naming, sharing
from sleuth.tools.mention_graph.index import GraphIndex
from sleuth.tools.mention_graph.names import phrases

Scored = list[tuple[str, float]]

DEPTH = 300
"""How many passages words and meaning bring."""
SEEDS = 8
POOL = {"base": 40, "names": 60, "named_by": 40, "shares": 40}
"""How many candidates come in by each way."""
LAMBDA: Mapping[Kind, float] = {"names": 0.6, "named_by": 0.4, "shares": 1.0}
AT_LEAST: Mapping[Kind, float] = {"names": 1.0, "named_by": 0.1, "shares": 0.1}
TITLE_LINK = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """An edge together with what only the target's text tells.

    nc: the share of the question's words that the target has and the source lacks. gain: what the edge adds to the
    target's score by the untrained formula.
    """

    edge: Edge
    nc: float
    gain: float


@dataclass(kw_only=True, slots=True)
class Candidate:
    """A passage that may belong to the answer, with all parts of its score.

    words: BM25 over the best one's, 0 where it was not found so. meaning: normalised cosine, likewise. title: how
    much the question names the passage. s0: the sum of the three over the best passage's. covered: the stems of the
    question that the passage has; coverage: their share. links: the edges that lead here, best first.
    """

    passage: Passage
    words: float
    meaning: float
    title: float
    s0: float
    words_rank: int | None
    meaning_rank: int | None
    covered: frozenset[str]
    coverage: float
    links: list[Link] = field(default_factory=list)
    score: float = 0.0


@dataclass(kw_only=True, slots=True)
class Base:
    """What is known of a passage before any edge."""

    words: float = 0.0
    meaning: float = 0.0
    title: float = 0.0
    words_rank: int | None = None
    meaning_rank: int | None = None
    s0: float = 0.0


class MentionGraph:
    """Ranks one collection's passages; all methods block."""

    def __init__(
        self,
        index: GraphIndex,
        keywords: KeywordIndex,
        fetch: Callable[[Sequence[str]], list[Passage]],
        meaning: Callable[[str, int], Scored] | None = None,
    ) -> None:
        """`fetch` gives passages by id; `meaning` searches the vectors, where there are any."""
        self._index = index
        self._keywords = keywords
        self._fetch = fetch
        self._meaning = meaning

    def candidates(self, text: str) -> list[Candidate]:
        """The pool for a question, best first by the untrained formula."""
        asked = Asked(text, self._keywords)
        base = self._base(asked)
        order = sorted(base, key=lambda id_: (-base[id_].s0, id_))
        read = {passage.id: Read(passage, asked) for passage in self._fetch(order[:SEEDS])}
        seeds = [Seed(passage=read[id_].passage, s0=base[id_].s0) for id_ in order[:SEEDS] if id_ in read]
        edges, backward = self._edges(seeds, read, asked, order)
        pool = _pool(order, edges, backward, base)
        read |= {passage.id: Read(passage, asked) for passage in self._fetch([id_ for id_ in pool if id_ not in read])}
        edges += [edge for way in backward if way.target in read and (edge := way.seen_in(read[way.target]))]
        found = [_candidate(read[id_], base.get(id_, Base()), asked) for id_ in pool if id_ in read]
        _link(found, edges, read, asked)
        return sorted(found, key=lambda candidate: (-candidate.score, candidate.passage.id))

    def _base(self, asked: Asked) -> dict[str, Base]:
        base: dict[str, Base] = {}
        words = self._keywords.search(asked.text, DEPTH)
        for rank, (id_, score) in enumerate(words, start=1):
            base[id_] = Base(words=score / words[0][1], words_rank=rank)
        meaning = self._meaning(asked.text, DEPTH) if self._meaning else []
        for rank, (id_, cosine) in enumerate(meaning, start=1):
            place = base.setdefault(id_, Base())
            low, high = meaning[-1][1], meaning[0][1]
            place.meaning, place.meaning_rank = (cosine - low) / (high - low) if high > low else 0.0, rank
        for id_, weight in self._named_in(asked).items():
            base.setdefault(id_, Base()).title = weight
        sums = {id_: place.words + place.meaning + TITLE_LINK * place.title for id_, place in base.items()}
        most = max(sums.values(), default=0.0)
        for id_, place in base.items():
            place.s0 = sums[id_] / most if most else 0.0
        return base

    def _named_in(self, asked: Asked) -> dict[str, float]:
        """How much the question names each passage: alias weight / √(passages with the alias)."""
        weights: dict[str, float] = {}
        for mention, known in longest(self._index, phrases(asked.text)):
            for alias in known:
                w = mention.sure * alias.weight / math.sqrt(alias.sharing)
                weights[alias.passage] = max(w, weights.get(alias.passage, 0.0))
        return weights

    def _edges(
        self, seeds: Sequence[Seed], read: Mapping[str, Read], asked: Asked, order: Sequence[str]
    ) -> tuple[list[Edge], list[Backward]]:
        passages = self._index.count()
        edges: list[Edge] = []
        backward: list[Backward] = []
        for seed in seeds:
            of_seed = read[seed.passage.id]
            edges += naming(self._index, seed, of_seed)
            edges += sharing(self._index, seed, of_seed, asked, passages)
            backward += named_by(self._index, seed, order[:DEPTH])
        return edges, backward


def _pool(
    order: Sequence[str], edges: Sequence[Edge], backward: Sequence[Backward], base: Mapping[str, Base]
) -> list[str]:
    """The ids whose texts are worth reading: the best by themselves and the best by each kind of edge."""
    promise: dict[str, dict[str, float]] = {"names": {}, "named_by": {}, "shares": {}}
    for edge in edges:
        # What has something of the question itself is likelier to have what is missing.
        value = edge.s0**2 * edge.w * edge.r + 0.1 * _s0(base, edge.target)
        of_kind = promise[edge.kind]
        of_kind[edge.target] = max(value, of_kind.get(edge.target, 0.0))
    for way in backward:
        value = way.seed.s0**2 * way.w + _s0(base, way.target)
        of_kind = promise["named_by"]
        of_kind[way.target] = max(value, of_kind.get(way.target, 0.0))
    chosen = list(order[: POOL["base"]])
    for kind, values in promise.items():
        chosen += nlargest(POOL[kind], values, key=lambda id_: (values[id_], id_))
    return list(dict.fromkeys(chosen))


def _s0(base: Mapping[str, Base], id_: str) -> float:
    return base[id_].s0 if id_ in base else 0.0


def _candidate(read: Read, base: Base, asked: Asked) -> Candidate:
    return Candidate(
        passage=read.passage,
        words=base.words,
        meaning=base.meaning,
        title=base.title,
        s0=base.s0,
        words_rank=base.words_rank,
        meaning_rank=base.meaning_rank,
        covered=read.found,
        coverage=asked.share(read.found),
        score=base.s0,
    )


def _link(found: Iterable[Candidate], edges: Iterable[Edge], read: Mapping[str, Read], asked: Asked) -> None:
    """Gives candidates their links and scores: H(c) = s0(c) + max of λ·s0(p)²·w·r·(a + 2·nc)."""
    candidates = {candidate.passage.id: candidate for candidate in found}
    for edge in edges:
        if edge.target in candidates:
            nc = asked.share(read[edge.target].found - read[edge.source].found)
            gain = LAMBDA[edge.kind] * edge.s0**2 * edge.w * edge.r * (AT_LEAST[edge.kind] + 2 * nc)
            candidates[edge.target].links.append(Link(edge=edge, nc=nc, gain=gain))
    for candidate in candidates.values():
        candidate.links.sort(key=lambda link: (-link.gain, link.edge.kind, link.edge.source, link.edge.name))
        candidate.score = candidate.s0 + (candidate.links[0].gain if candidate.links else 0.0)
