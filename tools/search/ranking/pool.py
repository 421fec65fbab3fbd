"""Features of a question and its pool, computed once before those of the candidates."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sleuth.tools.search.entity_graph import Candidate, QueryTerms

NEVER = -1.0
"""Position of an empty set of words."""


def title_of(candidate: Candidate) -> str:
    """Return the key of passages with the same title; a passage without a title has its own."""
    return candidate.passage.title.casefold() or candidate.passage.id


class Words:
    """Sets of the question's stems as bits of an integer, with their shares of the question."""

    def __init__(self, asked: QueryTerms) -> None:
        self._bits = {stem: 1 << at for at, stem in enumerate(asked.weights)}
        total = sum(asked.weights.values()) or 1.0
        self._weights = [weight / total for weight in asked.weights.values()]
        self._shares = {0: 0.0}
        self.all = (1 << len(self._weights)) - 1

    @property
    def count(self) -> int:
        """The number of stems of the question."""
        return len(self._weights)

    def bits(self, stems: Iterable[str]) -> int:
        """Return the set of these stems."""
        return sum(self._bits[stem] for stem in stems)

    def share(self, bits: int) -> float:
        """Return the share of the question that these stems cover, from 0 to 1."""
        known = self._shares.get(bits)
        if known is None:
            known = self._shares[bits] = sum(self._weights[at] for at in _places(bits))
        return known

    def place(self, bits: int) -> float:
        """Return the mean position of these words in the question, from 0 to 1."""
        share = self.share(bits)
        if not share:
            return NEVER
        return sum(at * self._weights[at] for at in _places(bits)) / share / max(1, self.count - 1)


def _places(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


@dataclass(kw_only=True, slots=True)
class CandidateTerms:
    """The question's words in a passage: in its title, in each sentence by its start, and in all of it."""

    title: int
    sentences: Mapping[int, int]
    all: int


@dataclass(slots=True)
class EdgeFeatures:
    """A passage's incoming and outgoing "names" edges within the pool."""

    inwards: float = 0.0
    outwards: int = 0
    best: float = 0.0


class Pool:
    """Values of a question and its candidates that all features share."""

    def __init__(self, asked: QueryTerms, candidates: Sequence[Candidate]) -> None:
        self.words = Words(asked)
        self.found = {each.passage.id: self._found(each) for each in candidates}
        most = max((each.formula for each in candidates), default=0.0) or 1.0
        self.scores = {each.passage.id: each.formula / most for each in candidates}
        self.rank = {id_: at for at, id_ in enumerate(sorted(self.scores, key=lambda id_: (-self.scores[id_], id_)))}
        strength = {link.edge.source: link.edge.s0 for each in candidates for link in each.links}
        self.seeds = {id_: at for at, id_ in enumerate(sorted(strength, key=lambda id_: (-strength[id_], id_)))}
        named = [each for each in candidates if each.base.title > 0]
        names = 0
        for each in named:
            names |= self.found[each.passage.id].title
        # What is asked of the things that the question names: the words that are not in their names.
        self.asks = self.words.all & ~names
        self.whole = self.words.share(self.asks) or 1.0
        self.namesakes = Counter(title_of(each) for each in candidates)
        self.better = self._better(candidates)
        self.ways = self._ways(candidates)
        self.question = self._question(candidates, named)

    def _found(self, candidate: Candidate) -> CandidateTerms:
        title = self.words.bits(candidate.read.title)
        sentences = {start: self.words.bits(stems) for (start, _), stems in candidate.read.sentences}
        return CandidateTerms(title=title, sentences=sentences, all=self.words.bits(candidate.read.found))

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
                if link.edge.kind == "names":
                    ways[each.passage.id].inwards += link.edge.w
                    source = ways[link.edge.source]
                    source.outwards += 1
                    value = link.edge.w * (0.2 + link.nc) * (0.3 + self.scores[each.passage.id])
                    source.best = max(source.best, value)
        return ways

    def _question(self, candidates: Sequence[Candidate], named: Sequence[Candidate]) -> dict[str, float]:
        best = [*sorted((each.base.s0 for each in candidates), reverse=True), *[0.0] * 5]
        return {
            "question_words": self.words.count,
            "question_second": best[1],
            "question_fifth": best[4],
            "question_names": 1 - self.words.share(self.asks),
            "question_named": len(named),
            "question_best_name": max((each.base.title for each in named), default=0.0),
            "question_pool": len(candidates),
        }
