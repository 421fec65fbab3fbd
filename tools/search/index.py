"""The contract of the indexes that are derived from the catalogue.

Each stores its position in the catalogue's journal. All methods block: call them in a thread.
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Literal, Self

from sleuth.tools.errors import StoreError
from sleuth.tools.storage.disk import remedy_of
from sleuth.tools.types import Passage

IndexName = Literal["keyword", "graph", "dense"]


class Index(ABC):
    """An index of one collection's passages."""

    name: str
    _place: Path | str
    _allowed: frozenset[str] | None = None

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""

    @abstractmethod
    def refresh(self) -> None:
        """Load the changes of other processes."""

    @abstractmethod
    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        """Add or replace passages, and remove ids; repeating it changes nothing."""

    @abstractmethod
    def clear(self) -> None:
        """Delete all entries."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of passages."""

    @abstractmethod
    def ids(self) -> set[str]:
        """Return the ids of all passages."""

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

    @contextmanager
    def _storing(self, what: str) -> Iterator[None]:
        """Translate errors of the files into a StoreError."""
        try:
            yield
        except BaseException as error:
            # tantivy raises ValueError for everything, and a class that cannot be imported when it meets damaged data.
            is_known = isinstance(error, OSError | ValueError | sqlite3.Error)
            if not is_known and type(error).__name__ != "PanicException":
                raise
            kind = "folder" if Path(self._place).is_dir() else "file"
            derived = f"It is derived from the documents: delete that {kind} to rebuild it."
            advice = remedy_of(Path(self._place), f"Check the disk's free space. {derived}")
            raise StoreError(f"The {self.name} in {self._place} cannot be {what}: {error}. {advice}") from error

    @abstractmethod
    def _number(self, name: str) -> int:
        """Return a stored number; 0 if it is missing."""

    @abstractmethod
    def _remember(self, **values: int) -> None:
        """Store numbers by name."""
