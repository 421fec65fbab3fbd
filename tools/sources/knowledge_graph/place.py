"""Where a knowledge graph is: behind a URL, in a file, or nowhere but in what was read of the collection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sleuth.tools.sources.knowledge_graph.collection import CollectionGraph
from sleuth.tools.sources.knowledge_graph.local import LocalGraph
from sleuth.tools.sources.knowledge_graph.lookups import KnowledgeGraph
from sleuth.tools.sources.knowledge_graph.server import ServedGraph
from sleuth.tools.storage import SqlTriples


@asynccontextmanager
async def graph_at(place: str | None, triples: SqlTriples | None = None) -> AsyncIterator[KnowledgeGraph | None]:
    """The graph at a place as the settings name it, open as long as the block lasts.

    Without a place it is the collection's triples, and None where there are none. A server is not asked yet. Raises
    StoreError for a file that cannot be read.
    """
    if place is None:
        yield CollectionGraph(triples) if triples and await triples.any() else None
    elif is_url(place):
        async with ServedGraph.open(place) as graph:
            yield graph
    else:
        yield await LocalGraph.read(_file(place))


def is_url(place: str) -> bool:
    """Whether a place is a server, rather than a file."""
    return place.lower().startswith(("http://", "https://"))


def _file(place: str) -> Path:
    return Path(place).expanduser()
