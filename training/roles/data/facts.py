"""Triples of passages: given ones, otherwise extracted from their sentences by rule.

Teaching runs use them, so that the facts in their prompts look like a model's extractions, not like gold.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sleuth.agents.roles.reading import MAX_TRIPLES, Extraction, Triple
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.text.tokenization import sentences
from training.simulation import Gold, Hop
from training.simulation.wording import ask_relation, fill_references, mentions

Known = Mapping[tuple[str, str], Sequence[tuple[str, str, str]]]
"""Triples by the title and the text of their passage."""

_VERB = re.compile(
    r"\b(?:is|was|are|were|has|had|became|won|plays|played|wrote|stars|received|died|served|includes|features|took|"
    r"made|began|lives|moved|married|attended|holds)\b"
    r"(?: (?:\w+ed|born|known|won|made|set))?(?: (?:in|on|at|by|of|for|to|from)\b)?"
)
_LIFE = re.compile(r"\(\s?(?:born )?([^()]*\b\d{4}\b[^()]*)\)")
_PRONOUN = re.compile(r"(?:he|she|it|they|this|that|the (?:film|song|album|book|band|series))\b", re.IGNORECASE)


def by_rule(title: str, text: str) -> list[tuple[str, str, str]]:
    """Return a triple for each sentence that has a verb of a short list, and one for the dates of a life."""
    found = []
    for unit in sentences(text):
        if life := _LIFE.search(unit):
            found.append((title, "lived" if "–" in life[1] else "born", life[1].strip()))
        plain = _LIFE.sub("", unit)
        verb = _VERB.search(plain)
        if verb and plain[verb.end() :].strip(" ."):
            subject = plain[: verb.start()].strip(" ,")
            alone = not subject or len(subject) > 60 or _PRONOUN.match(subject)
            found.append((title if alone else subject, verb[0], plain[verb.end() :].strip(" .,")))
    return found


def extraction_of(triples: Sequence[tuple[str, str, str]]) -> Extraction:
    """Return the first MAX_TRIPLES as the extractor's reply, cut to the lengths that it allows."""
    fields = [Triple(subject=one[:100], predicate=two[:80], object=three[:160]) for one, two, three in triples]
    return Extraction(triples=fields[:MAX_TRIPLES])


@dataclass(frozen=True, slots=True)
class PassageFacts:
    """The facts that a run on a question finds in a passage: those known of it, with what its hops need among them."""

    known: Known

    def __call__(self, gold: Gold, title: str, text: str) -> Extraction:
        """Return at most MAX_TRIPLES, in the order of the passage's text."""
        told = [at for at, hop in enumerate(gold.hops) if hop.answer and (hop.title, hop.text) == (title, text)]
        needed = [_triple(gold, at) for at in told]
        others = self._of(title, text)
        room = MAX_TRIPLES - len(needed)
        every = {*needed, *others[:room]}
        order = sorted(every, key=lambda each: (text.find(each[2]) % (len(text) + 1), each))
        return extraction_of(order)

    def worded(self, gold: Gold) -> Gold:
        """Return the gold with predicates of its passages' triples, for steps that are not relations already."""
        return replace(gold, hops=tuple(self._worded(hop) for hop in gold.hops))

    def _worded(self, hop: Hop) -> Hop:
        if not hop.answer or hop.question == ask_relation(hop.subject, hop.predicate):
            return hop
        telling = [
            each for each in self._of(hop.title, hop.text) if comparison_key(each[2]) == comparison_key(hop.answer)
        ]
        if telling:
            return replace(hop, subject=telling[0][0], predicate=telling[0][1])
        before, found, _ = hop.evidence.partition(hop.answer)
        verb = _VERB.search(before) if found else None
        if verb is None:
            return hop
        subject = before[: verb.start()].strip(" ,")
        alone = not subject or len(subject) > 60 or _PRONOUN.match(subject)
        return replace(hop, subject=hop.title if alone else subject, predicate=before[verb.start() :].strip(" ,")[:80])

    def _of(self, title: str, text: str) -> Sequence[tuple[str, str, str]]:
        return self.known.get((title, text)) or by_rule(title, text)


def _triple(gold: Gold, at: int) -> tuple[str, str, str]:
    hop = gold.hops[at]
    subject = fill_references(hop.subject, {number: each.answer for number, each in enumerate(gold.hops, start=1)})
    named = mentions(f"{hop.title} {hop.text}", subject)
    return (subject if named else hop.title, hop.predicate, hop.answer)
