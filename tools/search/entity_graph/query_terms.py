"""A question as weighted terms, and the share of them that a text covers."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from sleuth.tools.search.keyword_index import KeywordIndex


class QueryTerms:
    """The stems of a question, weighted by their rarity; a text with all of them has a share of 1."""

    def __init__(self, text: str, keywords: KeywordIndex) -> None:
        self.text = text
        stems = dict.fromkeys(keywords.stems(text))
        passages = keywords.count()
        self._weights = {stem: _idf(passages, keywords.frequency(stem)) for stem in stems}
        self._total = sum(self._weights.values())
        self._stems: Callable[[str], Sequence[str]] = keywords.stems

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each stem."""
        return self._weights

    def found_in(self, text: str) -> frozenset[str]:
        """Return the stems of the question that a text contains."""
        return frozenset(self._weights.keys() & self._stems(text))

    def share(self, stems: Collection[str]) -> float:
        """Return the share of the question that these stems cover, from 0 to 1."""
        # A set comes in another order in each process: a plain sum would differ in its last digit, and ties break so.
        return math.fsum(self._weights[stem] for stem in stems) / self._total if self._total else 0.0

    def has_all_of(self, name: str) -> bool:
        """Return whether the question contains every word of this name."""
        stems = self._stems(name)
        return bool(stems) and self._weights.keys() >= set(stems)


def _idf(passages: int, frequency: int) -> float:
    """Return BM25's inverse document frequency."""
    return math.log(1.0 + (passages - frequency + 0.5) / (frequency + 0.5))
