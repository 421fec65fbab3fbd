"""Questions and passages as terms and names, and the edges of the entity graph between passages.

Three kinds of edges lead from a passage p to a passage c: p mentions an alias of c, c mentions an alias of p, or both
mention a rare name. None is stored: they are computed from the index's postings and the passages' texts, for a few
passages at query time.
"""

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from sleuth.tools.search.entity_graph.index import RARE, Alias, GraphIndex
from sleuth.tools.search.keyword_index import KeywordIndex, inverse_frequency
from sleuth.tools.text.language import language_of
from sleuth.tools.text.names import NumberedMention, find_aliases, find_mentions, find_phrases, name_id, number_mentions
from sleuth.tools.text.tokenization import Span, sentence_spans
from sleuth.tools.types import Passage

Kind = Literal["names", "named_by", "shares"]


class QueryTerms:
    """The words of a question by their stems, weighted by their rarity; a text with all of them has a share of 1.

    Attributes:
        weights: the weight of each stem.
        only_language: the language of all passages, which need not be detected again; None if they have several.
    """

    def __init__(self, text: str, keywords: KeywordIndex) -> None:
        words = keywords.question_stems(text)
        passages = keywords.count()
        self.weights: Mapping[str, float] = {
            stem: inverse_frequency(passages, sum(map(keywords.frequency, variants)))
            for stem, variants in words.items()
        }
        self._total = sum(self.weights.values())
        self._words = {variant: stem for stem, variants in words.items() for variant in variants}
        self._keywords = keywords
        languages = keywords.languages()
        self.only_language = languages[0] if len(languages) == 1 else None

    def found_in(self, text: str, language: str) -> frozenset[str]:
        """Return the stems of the question that a text in a language contains."""
        text_stems = self._keywords.stems(text, language)
        return frozenset(self._words[stem] for stem in text_stems if stem in self._words)

    def share(self, stems: Collection[str]) -> float:
        """Return the share of the question that these stems cover, from 0 to 1."""
        # A set comes in another order in each process: a plain sum would differ in its last digit, and ties break so.
        return math.fsum(self.weights[stem] for stem in stems) / self._total if self._total else 0.0

    def has_all_of(self, name: str, language: str) -> bool:
        """Return whether the question contains every word of this name."""
        stems = self._keywords.stems(name, language)
        return bool(stems) and self._words.keys() >= set(stems)


# Features of a passage; all of one of 80 words take some 20 kB, those of a seed twice as much. Steps of a question, and
# questions on one subject, share theirs.
_remembered = lru_cache(maxsize=2048)


@_remembered
def _sentences(passage: Passage) -> list[Span]:
    return sentence_spans(passage.text)


@_remembered
def _mentioned(passage: Passage) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = {}
    for mention in find_mentions(passage.text):
        spans.setdefault(mention.name, []).append((mention.start, mention.end))
    return spans


@_remembered
def _language(passage: Passage) -> str:
    return language_of(passage.text)


@_remembered
def _phrases(passage: Passage) -> list[NumberedMention]:
    return number_mentions(find_phrases(passage.text))


_aliases = _remembered(find_aliases)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seed:
    """A passage whose edges are followed, and the probability-like score of its relevance, from 0 to 1."""

    passage: Passage
    s0: float


@dataclass(kw_only=True, slots=True)
class Edge:
    """An edge from `source` to `target` with its evidence.

    kind: "names" (T: source mentions an alias of target), "named_by" (B: target mentions an alias of source), or
    "shares" (X: both mention a name that is not completely in the question).
    w: specificity of the name: alias weight / √(passages with that alias), or for "shares" log(1+n/df) / log(1+n/2).
    r: the share of the question in the mentioning sentence, relative to the best sentence of its passage.
    s0: the source's own score. name: as written in the text. start, end: the mentioning sentence, in characters of the
    passage `stands_in` (the source; for "named_by" the target).
    nc: the share of the question's terms, by idf, that the target has and the source lacks. gain: what the edge adds to
    the target's score in the untrained formula. Both are set when the target's text is read.
    """

    kind: Kind
    source: str
    target: str
    name: str
    w: float
    r: float
    s0: float
    stands_in: str
    start: int
    end: int
    nc: float = 0.0
    gain: float = 0.0


class MatchedPassage:
    """A passage matched against a question: the terms it contains, and its best sentences."""

    def __init__(self, passage: Passage, asked: QueryTerms) -> None:
        self.passage = passage
        self._asked = asked
        self.found = self._found_in(f"{passage.title}. {passage.text}")

    @cached_property
    def title(self) -> frozenset[str]:
        """The question's stems in the title."""
        return self._found_in(self.passage.title)

    @cached_property
    def sentences(self) -> list[tuple[Span, frozenset[str]]]:
        """The sentences, each with the question's stems in it."""
        text = self.passage.text
        return [((start, end), self._found_in(text[start:end])) for start, end in _sentences(self.passage)]

    def best_sentence(self, spans: Iterable[Span]) -> tuple[float, Span]:
        """Return the best of the sentences with these spans: its match relative to the best of all, and its span."""
        matches = [self._matches[max(0, bisect_right(self._starts, start) - 1)] for start, _ in spans]
        return max(matches, key=lambda match: (match[0], -match[1][0]))

    @cached_property
    def mentioned(self) -> dict[str, list[Span]]:
        """The names that the passage mentions, each with its spans."""
        return _mentioned(self.passage)

    @cached_property
    def language(self) -> str:
        """The language by whose rules its words are stemmed."""
        return self._asked.only_language or _language(self.passage)

    def _found_in(self, text: str) -> frozenset[str]:
        return self._asked.found_in(text, self.language)

    @cached_property
    def _starts(self) -> list[int]:
        return [start for _, (start, _) in self._matches]

    @cached_property
    def _matches(self) -> list[tuple[float, Span]]:
        # The title is the subject of all sentences, so its words count for each of them.
        shares = [(self._asked.share(self.title | stems), span) for span, stems in self.sentences]
        best = max((share for share, _ in shares), default=0.0)
        return [(share / best if best else 1.0, span) for share, span in shares]


class SeedNames:
    """Entries of the index for the names in all seeds, read in three queries.

    known: passages by the number of their alias. rare: passages by a rare name that they mention. frequent: those of
    the given passages that mention a more frequent alias of a seed, by that alias.
    """

    def __init__(self, index: GraphIndex, seeds: Sequence[Seed], among: Sequence[str]) -> None:
        """Read the entries; frequent aliases are looked up in the passages `among` only."""
        passages = [seed.passage for seed in seeds]
        aliases = {name for each in passages for name in _aliases(each)}
        phrases = {mention.name for each in passages for mention in _phrases(each)}
        self.known = index.known_as(phrases | {name_id(name) for name in aliases})
        self.rare = index.mentioning(aliases.union(*map(_mentioned, passages)), at_most=RARE)
        self.frequent = index.mentioning_among(aliases - self.rare.keys(), among)


def find_alias_edges(names: SeedNames, seed: Seed, read: MatchedPassage) -> list[Edge]:
    """Return edges to the passages whose alias the seed mentions; of nested names the longest counts."""
    edges: dict[str, Edge] = {}
    for mention, aliases in match_aliases(names.known, _phrases(seed.passage)):
        for alias in aliases:
            w = mention.sure * alias.weight / math.sqrt(alias.sharing)
            edge = _edge("names", seed, alias.passage, read, [(mention.start, mention.end)], w=w)
            before = edges.get(alias.passage)
            if alias.passage != seed.passage.id and (before is None or before.w * before.r < edge.w * edge.r):
                edges[alias.passage] = edge
    return list(edges.values())


def _edge(kind: Kind, seed: Seed, target: str, read: MatchedPassage, spans: Sequence[Span], *, w: float) -> Edge:
    """Return an edge with the best of the sentences of the passage `read` that have the name at one of these spans."""
    r, (start, end) = read.best_sentence(spans)
    return Edge(
        kind=kind,
        source=seed.passage.id,
        target=target,
        name=read.passage.text[slice(*spans[0])],
        w=w,
        r=r,
        s0=seed.s0,
        stands_in=read.passage.id,
        start=start,
        end=end,
    )


def match_aliases(
    aliases: Mapping[int, list[Alias]], mentions: Iterable[NumberedMention]
) -> Iterator[tuple[NumberedMention, list[Alias]]]:
    """Yield the mentions that are an alias of a passage; of nested names only the longest."""
    chosen: list[NumberedMention] = []
    for mention in sorted(
        (each for each in mentions if each.name in aliases), key=lambda each: (each.start - each.end, each.start)
    ):
        if not any(other.start <= mention.start and mention.end <= other.end for other in chosen):
            chosen.append(mention)
            yield mention, aliases[mention.name]


def find_shared_name_edges(
    names: SeedNames, seed: Seed, read: MatchedPassage, asked: QueryTerms, passages: int
) -> list[Edge]:
    """Return edges to the passages that mention a rare name which the seed mentions too."""
    edges: list[Edge] = []
    for name, ids in names.rare.items():
        if name not in read.mentioned or len(ids) < 2 or asked.has_all_of(name, read.language):
            continue
        w = math.log1p(passages / len(ids)) / math.log1p(passages / 2)
        spans = read.mentioned[name]
        edges += [_edge("shares", seed, id_, read, spans, w=w) for id_ in ids if id_ != seed.passage.id]
    return edges


@dataclass(frozen=True, kw_only=True, slots=True)
class ReverseEdge:
    """A "named_by" edge before the target's text is read: its sentence is not known yet."""

    seed: Seed
    target: str
    alias: str
    w: float

    def seen_in(self, read: MatchedPassage) -> Edge | None:
        """Return the edge with the target's best sentence that contains the name."""
        spans = read.mentioned.get(self.alias)
        return _edge("named_by", self.seed, self.target, read, spans, w=self.w) if spans else None


def find_reverse_edges(names: SeedNames, seed: Seed) -> list[ReverseEdge]:
    """Return reverse edges to the passages that mention the seed's alias; of a frequent alias only to some of them."""
    weights = _aliases(seed.passage)
    best: dict[str, ReverseEdge] = {}
    for name, ids in (*names.rare.items(), *names.frequent.items()):
        if name not in weights:
            continue
        aliases = names.known.get(name_id(name))
        w = weights[name] / math.sqrt(aliases[0].sharing if aliases else 1)
        for id_ in ids:
            if id_ != seed.passage.id and (id_ not in best or best[id_].w < w):
                best[id_] = ReverseEdge(seed=seed, target=id_, alias=name, w=w)
    return list(best.values())
