"""Features of a passage that do not depend on the question, cached across questions."""

from array import array
from collections.abc import Iterator
from functools import cached_property, lru_cache

from sleuth.tools.search.entity_graph.names import Numbered, aliases, mentions, numbered, phrases
from sleuth.tools.search.entity_graph.spans import sentences
from sleuth.tools.types import Passage

Span = tuple[int, int]

REMEMBERED = 2048
"""Passages; one of 80 words takes some 20 kB. The steps of a question, and questions on one subject, share theirs."""


class Studied:
    """Read-only features of a passage, each computed at its first use."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage

    @cached_property
    def sentences(self) -> list[Span]:
        """The spans of its sentences."""
        return sentences(self._passage.text)

    @cached_property
    def mentioned(self) -> dict[str, list[Span]]:
        """The names that it mentions, each with its spans."""
        spans: dict[str, list[Span]] = {}
        for mention in mentions(self._passage.text):
            spans.setdefault(mention.name, []).append((mention.start, mention.end))
        return spans

    @property
    def phrases(self) -> Iterator[Numbered]:
        """Every run of its words that may be a title."""
        return map(Numbered, *self._phrases)

    @cached_property
    def _phrases(self) -> "tuple[array[int], array[int], array[int], array[float]]":
        """Numbers, starts, ends and certainties in arrays: a passage has hundreds of phrases."""
        names, starts, ends, sure = array("q"), array("i"), array("i"), array("d")
        for phrase in numbered(phrases(self._passage.text)):
            names.append(phrase.name)
            starts.append(phrase.start)
            ends.append(phrase.end)
            sure.append(phrase.sure)
        return names, starts, ends, sure

    @cached_property
    def aliases(self) -> dict[str, float]:
        """Its aliases, with weights."""
        return aliases(self._passage)


@lru_cache(maxsize=REMEMBERED)
def studied(passage: Passage) -> Studied:
    """Return the cached features of a passage; the cache compares id and text."""
    return Studied(passage)
