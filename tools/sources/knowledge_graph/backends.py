"""Backends of the knowledge graph: a server, the collection's triples, or a file."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from sleuth.tools.settings import client_options
from sleuth.tools.sources.knowledge_graph.functions import Function, known_functions
from sleuth.tools.sources.knowledge_graph.local import LocalGraph, similar
from sleuth.tools.sources.knowledge_graph.lookups import GraphUnavailable, KnowledgeGraph
from sleuth.tools.storage import SqlTriples
from sleuth.tools.text import comparison_key

MAX_BYTES = 5_000_000
"""Limit of a server's answer."""
MAX_FACTS = 40
"""Facts given of one entity."""


class ServedGraph:
    """A knowledge graph behind the URL of a client; answers all functions."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.functions = tuple(known_functions().values())
        self._client = client

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the server's `result`; raise GraphUnavailable for any other response."""
        # The benchmark's server takes the only argument of a function as `query`, except the ids of games.
        by_name = len(function.parameters) > 1 or "game_ids" in arguments
        sent = {name if by_name else "query": value for name, value in arguments.items()}
        body = bytearray()
        try:
            async with self._client.stream("POST", function.path, json=sent) as response:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise GraphUnavailable(f"the server's answer is larger than {MAX_BYTES:,} bytes")
            answered = httpx.Response(response.status_code, content=bytes(body), request=response.request)
            result = answered.raise_for_status().json()["result"]
        except httpx.HTTPStatusError as error:
            raise GraphUnavailable(f"the server answers {error.response.status_code} to {function.path}") from error
        except httpx.HTTPError as error:
            raise GraphUnavailable(f"{self._client.base_url} does not answer: {type(error).__name__}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise GraphUnavailable(f"the server's answer to {function.path} has no result in JSON") from error
        return result


class CollectionGraph:
    """A graph of the triples that RAS has extracted so far; answers the two functions on open entities."""

    def __init__(self, triples: SqlTriples) -> None:
        known = known_functions()
        self.functions = (known["open_search_entity_by_name"], known["open_get_entity"])
        self._triples = triples

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return names for a search; for an entity its facts, each with its passage."""
        if function.name == "open_search_entity_by_name":
            name = arguments["name"]
            found = await self._triples.naming(name) or await self._triples.naming(max(name.split(), key=len))
            return similar(name, {end for (subject, _, object), _ in found for end in (subject, object)})
        entity = arguments["entity"]
        facts = [
            {"subject": subject, "predicate": predicate, "object": object, "passage": passage}
            for (subject, predicate, object), passage in await self._triples.naming(entity)
            if comparison_key(entity) in (comparison_key(subject), comparison_key(object))
        ]
        return facts[:MAX_FACTS] or None


@asynccontextmanager
async def open_graph(
    place: str | None, triples: SqlTriples | None = None, *, proxy: str | None = None
) -> AsyncIterator[KnowledgeGraph | None]:
    """Open the graph at a place as in the settings.

    Without a place it is the collection's triples, and None if there are none. A server is not contacted yet. Raises
    StoreError for an unreadable file. Graphs are made in a thread, since the first one reads the list of functions.
    """
    if place is None:
        yield await asyncio.to_thread(CollectionGraph, triples) if triples and await triples.any() else None
    elif is_url(place):
        async with httpx.AsyncClient(base_url=place, timeout=10.0, **client_options(place, proxy)) as client:
            yield await asyncio.to_thread(ServedGraph, client)
    else:
        yield await asyncio.to_thread(lambda: LocalGraph.read(Path(place).expanduser()))


def is_url(place: str) -> bool:
    """Return whether a place is a server rather than a file."""
    return place.lower().startswith(("http://", "https://"))
