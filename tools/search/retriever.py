"""The search interface of methods, and rank fusion. The indexes behind it are interchangeable."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, get_args, runtime_checkable

from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.storage.catalogue import Listed
from sleuth.tools.types import Hit, Passage

MAX_QUERY_CHARS = 4_000
"""Characters of a query that are searched: graph search looks up every phrase of them."""

Mode = Literal["keyword", "dense", "hybrid", "graph", "knowledge-graph"]
"""knowledge-graph: dense search merged with Personalized PageRank over a graph of all triples."""
MODES: tuple[Mode, ...] = get_args(Mode)
GRAPH_MODES: tuple[Mode, ...] = ("graph", "knowledge-graph")


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A (sub-)question, and information from the run that may improve graph search.

    The other modes ignore hop, entities and seen, except that a knowledge graph is searched from the entities.
    hop: one passage should contain the answer, as with a step of a plan. A passage's own words and names then count
    more, and its connections less.
    entities: names found so far. Their words are added to the query, and passages that mention such a name or have it
    as an alias are raised.
    where: a filter of documents, such as "tag=contract date>=2025-01-01": only their passages are searched.
    seen: ids of passages already read. Their edges are followed like those of the best matches, so that passages which
    they name are raised; they themselves rank after all others. Unknown ids are ignored.
    """

    text: str
    k: int = 10
    mode: Mode = "hybrid"
    hop: bool = False
    entities: tuple[str, ...] = ()
    seen: frozenset[str] = frozenset()
    where: str = ""

    def checked(self) -> Self:
        """Return the query with the beginning of a text of more than MAX_QUERY_CHARS.

        Raises:
            UsageError: the text is empty or no valid Unicode.
        """
        if not self.text.strip():
            raise UsageError("The question is empty: enter the text to search for.")
        check_unicode(self.text)
        if len(self.text) <= MAX_QUERY_CHARS:
            return self
        return replace(self, text=self.text[: MAX_QUERY_CHARS + 1].rsplit(None, 1)[0][:MAX_QUERY_CHARS])


def check_unicode(question: str) -> None:
    """Raise UsageError for a question with bytes of another encoding, which cannot be stored or sent."""
    try:
        question.encode()
    except UnicodeEncodeError:
        raise UsageError("The question holds bytes that are not UTF-8: check the terminal's encoding.") from None


class Retriever(Protocol):
    """A search over the passages of one collection."""

    async def search(self, query: Query) -> list[Hit]:
        """Return the best `query.k` passages, best first; fewer if the collection has fewer.

        A retriever without a graph treats the graph modes as hybrid.
        """
        ...


@runtime_checkable
class DocumentReader(Protocol):
    """A retriever that can also read a document in order."""

    async def passages_of(self, document_id: str) -> list[Passage]:
        """Return the passages of a document, in order; none if it has no such document."""
        ...


@runtime_checkable
class DocumentLister(DocumentReader, Protocol):
    """A retriever that can also list its documents."""

    async def documents(self, *, limit: int = 100, after: str = "", find: str = "", where: str = "") -> list[Listed]:
        """Return documents that match a filter, ordered by id, after the id `after`."""
        ...


async def list_all(retriever: DocumentLister, *, where: str = "") -> list[Listed]:
    """Return all documents that match a filter, ordered by id."""
    listed: list[Listed] = []
    while page := await retriever.documents(limit=1_000, after=listed[-1].id if listed else "", where=where):
        listed += page
    return listed


@dataclass(frozen=True, slots=True)
class FilteredRetriever:
    """A retriever whose searches all have a filter."""

    retriever: Retriever
    where: str

    async def search(self, query: Query) -> list[Hit]:
        """Search the passages of the documents that match the filter, and that of the query if it has one."""
        return await self.retriever.search(replace(query, where=f"{self.where} {query.where}".strip()))

    async def passages_of(self, document_id: str) -> list[Passage]:
        """Return the passages of a document that a search has found, in order."""
        return await self.retriever.passages_of(document_id) if isinstance(self.retriever, DocumentReader) else []

    async def documents(self, *, limit: int = 100, after: str = "", find: str = "", where: str = "") -> list[Listed]:
        """Return documents that match the filter, and `where` if it is given; none of a retriever without a list."""
        if not isinstance(self.retriever, DocumentLister):
            return []
        both = f"{self.where} {where}".strip()
        return await self.retriever.documents(limit=limit, after=after, find=find, where=both)


def find_mode(name: str) -> Mode:
    """Return the search mode with this name; raise UnknownName with the most similar one."""
    if match := next((mode for mode in MODES if mode == name), None):
        return match
    raise UnknownName("search mode", name, list(MODES), f"There are: {', '.join(MODES)}.")


Scored = list[tuple[str, float]]

# Cormack, Clarke and Büttcher (SIGIR 2009) use 60, for long rankings. Methods read a handful of passages: with 60,
# recall@5 on 2Wiki is below that of keywords alone, with 2 it is above.
_RRF_K = 2


def fuse(lists: Sequence[Scored]) -> Scored:
    """Return the reciprocal rank fusion: each list adds 1 / (k + rank) to a passage; ties are sorted by id."""
    scores: dict[str, float] = {}
    for ranking in lists:
        for rank, (id_, _) in enumerate(ranking, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1.0 / (_RRF_K + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def fetch_depth(k: int) -> int:
    """Return the depth of each list for the best k of both, since one may rank low what the other ranks high."""
    return max(100, 2 * k)
