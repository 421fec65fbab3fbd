"""The one interface through which methods search; indexes come and go behind it."""

from dataclasses import dataclass
from typing import Literal, Protocol

from sleuth.tools.documents import Hit

Mode = Literal["keyword", "dense", "hybrid", "graph"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """What to look for: a (sub-)question, and what the run already knows that may help a search.

    Both of these are for graph search; the other modes ignore them.
    entities: names found so far. Their words are searched for beside the question's, and passages that go by such a
    name, or mention it, are raised.
    seen: ids of passages already read. Edges go out from them as from the best that the question finds, so that what
    they name is raised; they themselves come after all that was not read yet. Ids that are gone do no harm.
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
