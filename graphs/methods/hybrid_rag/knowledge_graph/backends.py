"""Backends of the knowledge graph: a server such as `examples/knowledge_graph`, or the collection's triples."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import httpx2

from sleuth.graphs.methods.hybrid_rag.knowledge_graph.functions import (
    Function,
    GraphUnavailable,
    KnowledgeGraph,
    declared_functions,
)
from sleuth.tools.http import UnusableReply, bounded_async_client
from sleuth.tools.settings import client_options
from sleuth.tools.text.normalization import comparison_key

if TYPE_CHECKING:
    from sleuth.tools.storage.triples import SqlTriples

MAX_FOUND = 10
"""Names that a search gives."""
MAX_FACTS = 40
"""Facts given of one entity."""


class ServedGraph:
    """A knowledge graph behind the URL of a client; answers all functions."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.functions = tuple(declared_functions().values())
        self._client = client

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the server's `result`; raise GraphUnavailable for any other response."""
        # The benchmark's server takes the only argument of a function as `query`, except the ids of games.
        by_name = len(function.parameters) > 1 or "game_ids" in arguments
        sent = {name if by_name else "query": value for name, value in arguments.items()}
        try:
            response = await self._client.post(function.path, json=sent)
            return response.raise_for_status().json()["result"]
        except httpx2.HTTPStatusError as error:
            raise GraphUnavailable(f"the server answers {error.response.status_code} to {function.path}") from error
        except UnusableReply as error:
            raise GraphUnavailable(f"the server's answer to {function.path} cannot be used: {error}") from error
        except httpx2.HTTPError as error:
            raise GraphUnavailable(f"{self._client.base_url} does not answer: {type(error).__name__}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise GraphUnavailable(f"the server's answer to {function.path} has no result in JSON") from error


class CollectionGraph:
    """A graph of the triples that RAS has extracted so far; answers the two functions on open entities."""

    def __init__(self, triples: "SqlTriples") -> None:
        functions = declared_functions()
        self.functions = (functions["open_search_entity_by_name"], functions["open_get_entity"])
        self._triples = triples

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return names for a search; for an entity its facts, each with its passage."""
        if function.name == "open_search_entity_by_name":
            name = arguments["name"]
            triples = await self._triples.naming(name) or await self._triples.naming(max(name.split(), key=len))
            return similar(name, {end for (subject, _, object), _ in triples for end in (subject, object)})
        entity = arguments["entity"]
        facts = [
            {"subject": subject, "predicate": predicate, "object": object, "passage": passage}
            for (subject, predicate, object), passage in await self._triples.naming(entity)
            if comparison_key(entity) in (comparison_key(subject), comparison_key(object))
        ]
        return facts[:MAX_FACTS] or None


def similar(name: str, names: Iterable[str]) -> list[str]:
    """Return equal names, then names that contain it, then similar spellings; at most ten."""
    key, by_words = comparison_key(name), {comparison_key(each): each for each in names}
    same = [each for each in by_words if each == key]
    containing = sorted((each for each in by_words if key in each and each != key), key=lambda each: (len(each), each))
    alike = [each for each in get_close_matches(key, by_words, n=MAX_FOUND, cutoff=0.75) if key not in each]
    return [by_words[each] for each in [*same, *containing, *alike]][:MAX_FOUND]


@asynccontextmanager
async def open_graph(
    url: str | None, triples: "SqlTriples | None" = None, *, proxy: str | None = None
) -> AsyncIterator[KnowledgeGraph | None]:
    """Open the server at a URL as in the settings; it is not contacted yet.

    Without a URL it is the graph of the collection's triples, and None without them. Graphs are made in a thread, since
    the first one reads the list of functions.
    """
    if url is None:
        yield await asyncio.to_thread(CollectionGraph, triples) if triples else None
        return
    options = client_options(url, proxy) | {"base_url": url, "timeout": 10.0}
    async with await asyncio.to_thread(bounded_async_client, options) as client:
        yield await asyncio.to_thread(ServedGraph, client)
