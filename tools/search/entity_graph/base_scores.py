"""Base scores of passages without edges: their match by keywords, vectors and names."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sleuth.tools.search.entity_graph.edges import match_aliases
from sleuth.tools.search.entity_graph.index import RARE, GraphIndex
from sleuth.tools.search.entity_graph.names import find_phrases, number_mentions
from sleuth.tools.search.entity_graph.tokenization import name_key
from sleuth.tools.search.keyword_index import KeywordIndex

Scored = list[tuple[str, float]]
Meaning = Callable[[str, int], Scored]

DEPTH = 300
"""Number of passages fetched by keywords and by vectors."""


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
"""For a step that one passage should answer, tuned on MuSiQue's sub-questions (`benchmarks/studies/per_hop.py`)."""


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
    meaning_rank: int | None = None
    s0: float = 0.0


class Signals:
    """Base scores, collected from the indexes."""

    def __init__(
        self, index: GraphIndex, keywords: KeywordIndex, meaning: Meaning | None, weights: Weights = QUESTION
    ) -> None:
        self._index = index
        self._keywords = keywords
        self._meaning = meaning
        self._weights = weights

    def gather(self, text: str, entities: Sequence[str]) -> dict[str, BaseScores]:
        """Return base scores of all passages found by a question and the known names."""
        base: dict[str, BaseScores] = {}
        self._by_words(base, text)
        if self._meaning is not None:
            _by_meaning(base, self._meaning(text, DEPTH))
        self._by_title(base, [text, *entities])
        self._by_mention(base, entities)
        by = self._weights
        sums = {
            id_: each.words + by.meaning * each.meaning + by.title * each.title + by.entities * each.entities
            for id_, each in base.items()
        }
        most = max(sums.values(), default=0.0)
        for id_, each in base.items():
            each.s0 = sums[id_] / most if most else 0.0
        return base

    def _by_words(self, base: dict[str, BaseScores], text: str) -> None:
        words = self._keywords.search(text, DEPTH)
        for rank, (id_, score) in enumerate(words, start=1):
            base[id_] = BaseScores(words=score / words[0][1], words_rank=rank)

    def _by_title(self, base: dict[str, BaseScores], texts: Iterable[str]) -> None:
        """Add alias weight / √(passages with the alias), for the longest names in the texts."""
        for text in texts:
            for mention, known in match_aliases(self._index, number_mentions(find_phrases(text))):
                for alias in known:
                    each = base.setdefault(alias.passage, BaseScores())
                    each.title = max(each.title, mention.sure * alias.weight / math.sqrt(alias.sharing))

    def _by_mention(self, base: dict[str, BaseScores], entities: Sequence[str]) -> None:
        names = [name for entity in entities if (name := name_key(entity))]
        few = self._index.mentioning(names, at_most=RARE)
        many = self._index.mentioning_among([name for name in names if name not in few], list(base))
        for ids in (few | many).values():
            for id_ in ids:
                base.setdefault(id_, BaseScores()).entities = 1.0


def _by_meaning(base: dict[str, BaseScores], found: Scored) -> None:
    for rank, (id_, cosine) in enumerate(found, start=1):
        each = base.setdefault(id_, BaseScores())
        low, high = found[-1][1], found[0][1]
        each.meaning, each.meaning_rank = (cosine - low) / (high - low) if high > low else 1.0, rank
