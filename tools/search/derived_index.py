"""Base of the indexes that are derived from the catalogue: their position in its journal, and restricted views."""

from abc import ABC, abstractmethod
from copy import copy
from pathlib import Path
from typing import Self


class DerivedIndex(ABC):
    """An index of one collection's passages that stores its position in the catalogue's journal."""

    file: Path | None = None
    """A file that every index of this kind has; None on a server."""

    _allowed: frozenset[str] | None = None

    def is_lost(self) -> bool:
        """Return whether the files were deleted; `refresh` then makes an empty index."""
        return self.file is not None and not self.file.exists()

    def restricted(self, passages: frozenset[str]) -> Self:
        """Return a view that finds only these passages; frequencies are still those of all passages."""
        view = copy(self)
        view._allowed = passages
        return view

    def applied(self) -> int:
        """Return the last journal number that this index contains."""
        return self._number("applied")

    def set_applied(self, seq: int) -> None:
        """Store the last journal number that this index contains."""
        self._remember(applied=seq)

    def reached(self) -> int:
        """Return the last journal number that may be partly applied."""
        return max(self._number("reached"), self.applied())

    def set_reached(self, seq: int) -> None:
        """Store the last journal number that may be partly applied."""
        self._remember(reached=seq)

    @abstractmethod
    def _number(self, name: str) -> int:
        """Return a stored number; 0 if it is missing."""

    @abstractmethod
    def _remember(self, **values: int) -> None:
        """Store numbers by name."""
