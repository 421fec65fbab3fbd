"""The one interface through which methods search; indexes come and go behind it."""

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from sleuth.tools.errors import UnknownName
from sleuth.tools.types import Hit

Mode = Literal["keyword", "dense", "hybrid", "graph", "graph-ppr"]
"""graph-ppr: graph search scored by Personalized PageRank, over triples too where there are any."""
GRAPH_MODES: tuple[Mode, ...] = ("graph", "graph-ppr")


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """What to look for: a (sub-)question, and what the run already knows that may help a search.

    These are for graph search; the other modes ignore them.
    hop: whether one passage should tell it, as with a step of a plan. Then a passage's own words and the names in it
    count for more, and what it is connected with for less.
    entities: names found so far. Their words are searched for beside the question's, and passages that go by such a
    name, or mention it, are raised.
    seen: ids of passages already read. Edges go out from them as from the best that the question finds, so that what
    they name is raised; they themselves come after all that was not read yet. Ids that are gone do no harm.
    """

    text: str
    k: int = 10
    mode: Mode = "hybrid"
    hop: bool = False
    entities: tuple[str, ...] = ()
    seen: frozenset[str] = frozenset()


class Retriever(Protocol):
    """Finds passages of one collection."""

    async def search(self, query: Query) -> list[Hit]:
        """The best `query.k` passages, best first; fewer where the collection has fewer.

        What has no graph takes the graph modes for hybrid.
        """
        ...


def find_mode(name: str) -> Mode:
    """The search mode of this name; raises UnknownName with the nearest."""
    modes: tuple[Mode, ...] = get_args(Mode)
    for mode in modes:
        if mode == name:
            return mode
    raise UnknownName("search mode", name, list(modes), f"There are: {', '.join(modes)}.")
