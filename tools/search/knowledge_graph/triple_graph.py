"""In-memory graph of a collection's triples and passages.

It contains only facts of single passages, so deleted passages leave no trace.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sleuth.tools.storage import Triple
from sleuth.tools.text import name_id, name_key


class Fact(NamedTuple):
    """A triple with the numbers of its subject and object, which are the same as in the entity graph."""

    triple: Triple
    subject: int
    object: int


class TripleGraph:
    """Facts by passage."""

    def __init__(self, triples: Mapping[str, Sequence[Triple]]) -> None:
        """Index the triples of each passage, by its id."""
        self._facts = {id_: list(filter(None, map(_fact, those))) for id_, those in triples.items()}

    def facts(self, passage: str) -> Sequence[Fact]:
        """Return a passage's facts; empty if its triples are not extracted yet."""
        return self._facts.get(passage, ())

    def passages(self) -> Sequence[str]:
        """Return the passages whose triples were extracted, also those without any, by id."""
        return sorted(self._facts)

    def names(self) -> dict[int, str]:
        """Return the names in facts, normalized, by their numbers."""
        return {
            number: name_key(text)
            for facts in self._facts.values()
            for fact in facts
            for number, text in ((fact.subject, fact.triple[0]), (fact.object, fact.triple[2]))
        }


def _fact(triple: Triple) -> Fact | None:
    subject, object_ = name_key(triple[0]), name_key(triple[2])
    return Fact(triple, name_id(subject), name_id(object_)) if subject and object_ else None
