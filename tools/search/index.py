"""Interface of the indexes that are derived from the catalogue."""

from collections.abc import Sequence
from typing import Literal, Protocol

from sleuth.tools.types import Passage

IndexName = Literal["keyword", "graph", "dense"]


class Index(Protocol):
    """An index that is derived from the catalogue's passages."""

    @property
    def name(self) -> str:
        """Name for messages."""
        ...

    def applied(self) -> int:
        """Return the last journal number that it contains."""
        ...

    def set_applied(self, seq: int) -> None:
        """Store the last journal number that it contains."""
        ...

    def reached(self) -> int:
        """Return the last journal number that may be partly applied, for example after a kill."""
        ...

    def set_reached(self, seq: int) -> None:
        """Store the last journal number that may be partly applied."""
        ...

    def refresh(self, *, anew: bool) -> None:
        """Reload changes from other indexes on the same files; `anew`: also those from other processes."""
        ...

    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        """Add and remove passages; repeating it changes nothing."""
        ...

    def clear(self) -> None:
        """Delete all entries."""
        ...

    def count(self) -> int:
        """Return the number of passages."""
        ...

    def ids(self) -> set[str]:
        """Return the ids of all passages."""
        ...

    def close(self) -> None:
        """Close all resources."""
        ...
