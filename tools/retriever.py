"""The one interface through which methods search; indexes come and go behind it."""

from dataclasses import dataclass
from typing import Literal, Protocol

from sleuth.tools.documents import Hit

Mode = Literal["keyword", "dense", "hybrid", "graph"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """What to look for: a (sub-)question, and what the run already knows that may help a search.

    `entities` are names found so far, `seen` the ids of passages already read; both may be ignored by a mode
    that has no use for them.
    """

    text: str
    k: int = 10
    mode: Mode = "hybrid"
    entities: tuple[str, ...] = ()
    seen: frozenset[str] = frozenset()


class Retriever(Protocol):
    """Finds passages of one collection."""

    async def search(self, query: Query) -> list[Hit]:
        """The best `query.k` passages, best first; fewer where the collection has fewer."""
        ...
