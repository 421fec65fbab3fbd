"""The triples of a collection with their passages, ready to be walked along.

Made of facts of single passages only, so whatever came and went before leaves no trace.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sleuth.tools.search.entity_graph import key, name_id
from sleuth.tools.storage import Triple


class Fact(NamedTuple):
    """A triple with what its subject and object are compared by: the same numbers as in the mention graph."""

    triple: Triple
    subject: int
    object: int


class TripleGraph:
    """Facts by passage, and passages by the names in their facts."""

    def __init__(self, triples: Mapping[str, Sequence[Triple]]) -> None:
        """`triples` are those of each passage, by its id."""
        self._facts = {id_: list(filter(None, map(_fact, those))) for id_, those in triples.items()}
        self._passages: dict[int, list[str]] = {}
        for id_ in sorted(self._facts):
            for name in {name for fact in self._facts[id_] for name in (fact.subject, fact.object)}:
                self._passages.setdefault(name, []).append(id_)

    def facts(self, passage: str) -> Sequence[Fact]:
        """What a passage says; nothing where it was not read yet."""
        return self._facts.get(passage, ())

    def with_name(self, names: Iterable[int]) -> dict[int, list[str]]:
        """The passages in whose facts each of these names is; names that are in none are left out."""
        return {name: self._passages[name] for name in names if name in self._passages}


def _fact(triple: Triple) -> Fact | None:
    subject, object_ = key(triple[0]), key(triple[2])
    return Fact(triple, name_id(subject), name_id(object_)) if subject and object_ else None
