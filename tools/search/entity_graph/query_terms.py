"""A question as weighted terms, and the share of them that a text covers."""

import math
from collections.abc import Collection, Mapping

from sleuth.tools.search.keyword_index import KeywordIndex, inverse_frequency
from sleuth.tools.text import question_language


class QueryTerms:
    """The words of a question by their stems, weighted by their rarity; a text with all of them has a share of 1.

    Attributes:
        text: the question.
        only_language: the language of all passages, which need not be detected again; None if they have several.
    """

    def __init__(self, text: str, keywords: KeywordIndex) -> None:
        self.text = text
        words = keywords.question_stems(text)
        passages = keywords.count()
        self._weights = {
            stem: inverse_frequency(passages, sum(map(keywords.frequency, variants)))
            for stem, variants in words.items()
        }
        self._total = sum(self._weights.values())
        self._words = {variant: stem for stem, variants in words.items() for variant in variants}
        self._keywords = keywords
        languages = keywords.languages()
        self._language = question_language(text, languages)
        self.only_language = languages[0] if len(languages) == 1 else None

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each stem."""
        return self._weights

    def found_in(self, text: str, language: str | None = None) -> frozenset[str]:
        """Return the stems of the question that a text contains; without a language it is in the question's."""
        found = self._keywords.stems(text, language or self._language)
        return frozenset(self._words[stem] for stem in found if stem in self._words)

    def share(self, stems: Collection[str]) -> float:
        """Return the share of the question that these stems cover, from 0 to 1."""
        # A set comes in another order in each process: a plain sum would differ in its last digit, and ties break so.
        return math.fsum(self._weights[stem] for stem in stems) / self._total if self._total else 0.0

    def has_all_of(self, name: str, language: str) -> bool:
        """Return whether the question contains every word of this name."""
        stems = self._keywords.stems(name, language)
        return bool(stems) and self._words.keys() >= set(stems)
