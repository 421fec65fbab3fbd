"""Features of a passage that do not depend on the question, cached across questions."""

from array import array
from collections.abc import Iterator
from functools import cached_property, lru_cache

from sleuth.tools.text import (
    NumberedMention,
    Span,
    find_aliases,
    find_mentions,
    find_phrases,
    language_of,
    number_mentions,
    sentence_spans,
)
from sleuth.tools.types import Passage

REMEMBERED = 2048
"""Passages; one of 80 words takes some 20 kB. The steps of a question, and questions on one subject, share theirs."""


class PassageFeatures:
    """Read-only features of a passage, each computed at its first use."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage

    @cached_property
    def sentences(self) -> list[Span]:
        """The spans of its sentences."""
        return sentence_spans(self._passage.text)

    @cached_property
    def mentioned(self) -> dict[str, list[Span]]:
        """The names that it mentions, each with its spans."""
        spans: dict[str, list[Span]] = {}
        for mention in find_mentions(self._passage.text):
            spans.setdefault(mention.name, []).append((mention.start, mention.end))
        return spans

    @cached_property
    def language(self) -> str:
        """The language by whose rules its words are stemmed."""
        return language_of(self._passage.text)

    @property
    def phrases(self) -> Iterator[NumberedMention]:
        """Every run of its words that may be a title."""
        return map(NumberedMention, *self._phrases)

    @cached_property
    def _phrases(self) -> "tuple[array[int], array[int], array[int], array[float]]":
        """Numbers, starts, ends and certainties in arrays: a passage has hundreds of phrases."""
        names, starts, ends, sure = array("q"), array("i"), array("i"), array("d")
        for phrase in number_mentions(find_phrases(self._passage.text)):
            names.append(phrase.name)
            starts.append(phrase.start)
            ends.append(phrase.end)
            sure.append(phrase.sure)
        return names, starts, ends, sure

    @cached_property
    def aliases(self) -> dict[str, float]:
        """Its aliases, with weights."""
        return find_aliases(self._passage)


@lru_cache(maxsize=REMEMBERED)
def features_of(passage: Passage) -> PassageFeatures:
    """Return the cached features of a passage; the cache compares id and text."""
    return PassageFeatures(passage)
