"""The store of the triples that runs have extracted from passages."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sleuth.tools.types import Triple

if TYPE_CHECKING:
    from sleuth.tools.storage.triples import SqlTriples


class MemoryTriples:
    """A store for tests and for graphs that run without a catalogue."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], list[Triple]] = {}

    async def get(self, fingerprints: Iterable[str], *, version: str) -> dict[str, list[Triple]]:
        """Return the triples of those passages that were read before; a passage without any has an empty list."""
        return {mark: self.kept[version, mark] for mark in fingerprints if (version, mark) in self.kept}

    async def put(self, extracted: Mapping[str, Sequence[Triple]], *, version: str) -> None:
        """Store the triples of passages that were read."""
        self.kept.update({(version, mark): list(those) for mark, those in extracted.items()})


TripleStore: TypeAlias = "MemoryTriples | SqlTriples"
"""Store of triples by the fingerprints of passages and the version of the prompt."""
