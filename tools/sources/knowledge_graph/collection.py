"""The collection as a knowledge graph: what models have read in its passages so far, asked by names of entities."""

from collections.abc import Sequence
from typing import Any, Protocol

from sleuth.tools.sources.knowledge_graph.functions import FUNCTIONS, Function
from sleuth.tools.sources.knowledge_graph.local import similar
from sleuth.tools.storage import Triple
from sleuth.tools.text import words

MAX_FACTS = 40
"""Facts given of one entity."""


class ReadTriples(Protocol):
    """Triples that were read before, by what they name."""

    async def naming(self, text: str) -> list[tuple[Triple, str]]:
        """Triples that have the text in a subject or an object, in any letter case, each with a passage's id."""
        ...


class CollectionGraph:
    """Answers the two functions on open entities; it knows what RAS has read, and nothing before that."""

    def __init__(self, triples: ReadTriples) -> None:
        self._triples = triples

    @property
    def functions(self) -> Sequence[Function]:
        """Searching an entity, and telling its facts."""
        return (FUNCTIONS["open_search_entity_by_name"], FUNCTIONS["open_get_entity"])

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Names for a search; for an entity its facts, each with the passage in which it stands."""
        if function.name == "open_search_entity_by_name":
            return await self._search(arguments["name"])
        return await self._facts(arguments["entity"])

    async def _search(self, name: str) -> list[str]:
        found = await self._triples.naming(name) or await self._triples.naming(max(name.split(), key=len))
        return similar(name, {end for (subject, _, object), _ in found for end in (subject, object)})

    async def _facts(self, entity: str) -> list[dict[str, str]] | None:
        found = [
            {"subject": subject, "predicate": predicate, "object": object, "passage": passage}
            for (subject, predicate, object), passage in await self._triples.naming(entity)
            if words(entity) in (words(subject), words(object))
        ]
        return found[:MAX_FACTS] or None
