"""Interface of the indexes that are derived from the catalogue."""

from collections.abc import Sequence
from typing import Literal, Protocol

from sleuth.tools.types import Passage

IndexName = Literal["keyword", "graph", "dense"]


class Index(Protocol):
    """Anything derived from the catalogue's passages."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def applied(self) -> int:
        """The last journal number that it contains."""
        ...

    def set_applied(self, seq: int) -> None:
        """Remembers the last journal number that it contains."""
        ...

    def reached(self) -> int:
        """The last journal number of which anything may be in: what a kill left half-way is not applied."""
        ...

    def set_reached(self, seq: int) -> None:
        """Remembers that changes up to a journal number begin to come in."""
        ...

    def refresh(self, *, anew: bool) -> None:
        """Sees what another one has written; `anew`: in another process too."""
        ...

    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        """Puts passages in and takes ids out; doing it again changes nothing."""
        ...

    def clear(self) -> None:
        """Empties it."""
        ...

    def count(self) -> int:
        """How many passages it holds."""
        ...

    def ids(self) -> set[str]:
        """The ids of the passages that it holds."""
        ...

    def close(self) -> None:
        """Lets go of whatever it has open."""
        ...
