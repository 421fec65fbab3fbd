"""A collection of documents: the catalogue, its indexes, search over them, and copies of ingested files.

The copies are for citations that open in the file itself. They are below SLEUTH_HOME, by catalogue, owner and content;
the catalogue names the copy of each document. A copy is written before the catalogue names it, and removed after the
last document that names it, so a kill leaves at most copies without a document; the next removal removes these too.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sleuth.tools.collection.index_set import IndexSet, OnIndexed, ignore
from sleuth.tools.errors import UsageError, VectorsReplaced, needs_part
from sleuth.tools.home import Home
from sleuth.tools.search import Mode, Query
from sleuth.tools.search.index import Index, IndexName
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.ranking import MODEL, search_graph
from sleuth.tools.search.retriever import fetch_depth, fuse
from sleuth.tools.search.vectors import NONE, Embedder, NoEmbedder, VectorIndex
from sleuth.tools.search.vectors.embedder import make_embedder
from sleuth.tools.search.vectors.index import embedder_changed
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue, Listed
from sleuth.tools.storage.database import catalogue_url, in_thread, warn_of_loss
from sleuth.tools.storage.filters import parse_filter
from sleuth.tools.types import Document, Hit, Passage

if TYPE_CHECKING:
    from sleuth.tools.search.knowledge_graph import NameGraph, NameGraphCache
    from sleuth.tools.search.reranker import Reranker
    from sleuth.tools.storage.triples import SqlTriples

_log = logging.getLogger(__name__)

MAX_FILTERS = 16
"""Filters whose passages are kept in memory."""


class Collection:
    """Documents and passages of one collection, and search over them: a Retriever.

    The caller holds the lock on SLEUTH_HOME. `sleuth.tools.ingestion` changes the documents.

    Attributes:
        settings: the settings that it was opened with.
        catalogue: documents, passages and the journal.
        indexes: what search uses; they follow the catalogue.
        originals: copies of ingested files.
        reranker: orders the hits of a search, if there is one.
    """

    def __init__(self, settings: Settings, catalogue: Catalogue, embedder: Embedder) -> None:
        """Use `Collection.open`."""
        self.settings = settings
        self.catalogue = catalogue
        self.indexes = IndexSet(settings, catalogue, embedder)
        self.originals = Originals(catalogue, settings.home)
        self.reranker: Reranker | None = None
        if settings.reranker:
            from sleuth.tools.search.reranker import EndpointReranker

            self.reranker = EndpointReranker(settings)
        self.search_slots = asyncio.Semaphore(4)  # searches at a time: asyncio has more threads, for other owners
        self._embedder = embedder
        self._has_warned = False
        self._ranking_model = MODEL if settings.ranker == "trained" else None
        self._matching = lru_cache(maxsize=MAX_FILTERS)(self._find_matching)
        self._copies = lru_cache(maxsize=1)(lambda _head: catalogue.passages_of_copies())

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder; None if SLEUTH_EMBEDDER is none."""
        return None if isinstance(self._embedder, NoEmbedder) else self._embedder

    @cached_property
    def name_graphs(self) -> "NameGraphCache":
        """Return the knowledge graph of stored triples."""
        with needs_part("triples", "Search mode knowledge-graph"):
            from sleuth.tools.search.knowledge_graph import NameGraphCache

        return NameGraphCache(self.catalogue, self.indexes.name_vectors_file, self._embedder)

    @classmethod
    @in_thread
    def open(
        cls,
        settings: Settings,
        *,
        home: Home | None = None,
        embedder: Embedder | None = None,
        check_embedder: bool = True,
    ) -> Self:
        """Open the collection of the settings, in their home; indexes and models are loaded when they are first needed.

        Raises:
            EmbedderChanged: the collection was built with another embedder (unless `check_embedder` is off, which
                only a rebuild may ask for).
            StoreTooNew: a newer release wrote it.
        """
        embedder = embedder or make_embedder(settings)
        engine = (home or Home(settings)).engine(catalogue_url(settings.home, settings.database_url))
        if settings.database_url is None:
            warn_of_loss(settings.home / "catalogue.db", settings.home.glob("keywords/*"))
        catalogue = Catalogue(engine, owner=settings.owner, collection=settings.collection)
        built_with = catalogue.embedder()
        if check_embedder and built_with is not None and embedder.name not in (built_with, NONE):
            catalogue.close()
            raise embedder_changed(settings.collection, built_with, embedder.name)
        return cls(settings, catalogue, embedder)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @in_thread
    def close(self) -> None:
        """Close the indexes and connections."""
        self.indexes.close()
        self.catalogue.close()

    @in_thread
    def document(self, id: str) -> Document:
        """Return a document; raise UnknownName if it does not exist."""
        return self.catalogue.get_document(id)

    @in_thread
    def complete_id(self, prefix: str) -> str:
        """Return the id of the document that begins so, or has this path; the same text if there is none.

        Raises:
            UsageError: several documents begin with it, or have this path.
        """
        return self.catalogue.complete_id(prefix)

    @in_thread
    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages with these ids, in this order, without deleted ones."""
        return self.catalogue.passages(ids)

    @in_thread
    def passages_of(self, document_id: str) -> list[Passage]:
        """Return the passages of a document, in order."""
        return self.catalogue.passages_of(document_id)

    @in_thread
    def passage_ids(self) -> set[str]:
        """Return the ids of all passages."""
        return self.catalogue.passage_ids()

    @in_thread
    def version(self) -> int:
        """Return the sequence number of the last change; 0 before the first."""
        return self.catalogue.head()

    @in_thread
    def original(self, document_id: str) -> Path | None:
        """Return the copy of the file of a document; None if there is none."""
        return self.originals.path_of(document_id)

    @in_thread
    def knowledge_graph(self) -> "NameGraph":
        """Return the graph of the names in stored triples."""
        return self.name_graphs.graph()

    def triples(self, *, model: str = "") -> "SqlTriples":
        """Return the triples in the passages; only methods that concern one model need its name."""
        return self.catalogue.triples(model=model)

    @in_thread
    def documents(self, *, limit: int = 100, after: str = "", find: str = "", where: str = "") -> list[Listed]:
        """Return documents after an id, in order of ids, with `find` in their title and matching a filter."""
        conditions = parse_filter(where) if where.strip() else None
        return self.catalogue.list_documents(limit=limit, after=after, find=find, where=conditions)

    @in_thread
    def known_ids(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that belong to a passage or a document."""
        return {passage.id for passage in self.catalogue.passages(ids)} | self.catalogue.sources_of_ids(ids).keys()

    @in_thread
    def fingerprint(self) -> str:
        """Return a SHA-256 over the id, title and text of all passages: equal collections have equal ones."""
        digest = sha256()
        for passage in self.catalogue.passages(sorted(self.catalogue.passage_ids())):
            digest.update(f"{passage.id}\0{passage.fingerprint()}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @in_thread
    def count(self) -> tuple[int, int]:
        """Return the numbers of documents and passages."""
        return self.catalogue.count_documents(), self.catalogue.count_passages()

    async def search(self, query: Query) -> list[Hit]:
        """Return the best `query.k` passages, best first; hits of graph search contain an explanation.

        Raises:
            UsageError: the collection or the question is empty, the filter cannot be parsed, or the mode is dense
                without an embedder. Hybrid search then uses the keyword index only, and logs that once.
        """
        checked = query.checked()
        await self.require_documents()
        if self.reranker is None:
            return await self._search_in_thread(checked)
        from sleuth.tools.search.reranker import CANDIDATES, rerank_best

        hits = await self._search_in_thread(replace(checked, k=max(checked.k, CANDIDATES)))
        return (await rerank_best(self.reranker, checked.text, hits))[: checked.k]

    async def _search_in_thread(self, query: Query) -> list[Hit]:
        async with self.search_slots:
            return await asyncio.to_thread(self._search, query)

    @in_thread
    def require_documents(self, where: str = "") -> None:
        """Raise UsageError if the collection is empty, or none of its documents matches the filter."""
        if self.catalogue.is_empty():
            raise UsageError(
                f"Collection {self.settings.collection!r} has no documents yet: `sleuth ingest PATH` adds some."
            )
        if where.strip() and not self._filtered(where):
            raise UsageError(f"No document matches the filter {where!r}. `sleuth docs list` shows the documents.")

    async def catch_up(self, names: Sequence[IndexName] = (), *, on_indexed: OnIndexed = ignore) -> None:
        """Update the indexes, or some of them; call `on_indexed` with the number of passages written."""
        for name in names or self.indexes.names:
            await asyncio.to_thread(self.indexes.ready, name, on_indexed)

    def _indexes_for(self, mode: Mode) -> tuple[IndexName, ...]:
        if mode == "keyword" or mode == "dense":  # noqa: PLR1714 - mypy narrows the type by these
            return (mode,)
        if mode == "knowledge-graph":
            return ("dense",)
        if mode != "hybrid":
            return self.indexes.names
        if "dense" not in self.indexes.names and not self._has_warned:
            self._has_warned = True
            _log.warning("SLEUTH_EMBEDDER is none: hybrid search uses the keyword index only.")
        return tuple(name for name in self.indexes.names if name != "graph")

    def _filtered(self, where: str) -> frozenset[str]:
        """Return the passages of the documents that match a filter, cached until the next change."""
        return self._matching(where, self.catalogue.head())

    def _find_matching(self, where: str, _head: int) -> frozenset[str]:
        return self.catalogue.matching_passages(parse_filter(where))

    def _search(self, query: Query) -> list[Hit]:
        """Return the best passages, of documents with the same text only those of the best one."""
        hits = self._search_once(query, self._filtered(query.where) if query.where.strip() else None)
        if len({(hit.passage.start, hit.passage.text) for hit in hits}) == len(hits):  # as a rule: no query is needed
            return hits
        found = [*dict.fromkeys(hit.passage.document_id for hit in hits)]
        hashes = self.catalogue.content_hashes(found)
        best = {hashes.get(id_): id_ for id_ in reversed(found)}
        if len(best) == len(found):
            return hits
        return self._search_once(query, self._without_copies(query.where, {*best.values()}))

    def _without_copies(self, where: str, best: Set[str]) -> frozenset[str]:
        """Return the passages that match a filter, of copies those of one in `best`, or else the first ingested."""
        allowed, dropped = self._filtered(where), set[str]()
        for copies in self._copies(self.catalogue.head()):
            kept = min(copies, key=lambda id_: (id_ not in best, not allowed.issuperset(copies[id_])))
            dropped.update(*(passages for id_, passages in copies.items() if id_ != kept))
        return allowed - dropped

    def _search_once(self, query: Query, allowed: frozenset[str] | None) -> list[Hit]:
        try:
            return self._search_indexes(query, allowed)
        except VectorsReplaced:
            self.indexes.invalidate("dense")
            return self._search_indexes(query, allowed)

    def _search_indexes(self, query: Query, allowed: frozenset[str] | None) -> list[Hit]:
        head = self.catalogue.head()
        indexes = {name: self.indexes.for_search(name, head) for name in self._indexes_for(query.mode)}
        if allowed is not None:
            indexes = {name: index.restricted(allowed) for name, index in indexes.items()}
            query = replace(query, seen=query.seen & allowed)
        if _matches_nothing(query.text, indexes):
            return []
        if query.mode == "graph":
            return search_graph(query, indexes, self.catalogue.passages, self._ranking_model)
        if query.mode == "knowledge-graph":
            graph, fetch, count = self.name_graphs.graph(), self.catalogue.passages, self.catalogue.count_passages()
            from sleuth.tools.search.knowledge_graph import search_knowledge_graph

            return search_knowledge_graph(query, indexes, fetch, graph, passages=count, allowed=allowed)
        searched = (index for index in indexes.values() if isinstance(index, KeywordIndex | VectorIndex))
        lists = [index.search(query.text, fetch_depth(query.k)) for index in searched]
        best = (fuse(lists) if len(lists) > 1 else lists[0])[: query.k]
        passages = {passage.id: passage for passage in self.catalogue.passages([id_ for id_, _ in best])}
        scored = [(passages[id_], score) for id_, score in best if id_ in passages]
        return [Hit(passage=passage, score=score, rank=rank) for rank, (passage, score) in enumerate(scored, start=1)]


def _matches_nothing(text: str, indexes: Mapping[IndexName, Index]) -> bool:
    """Return whether no passage has a word of a text, and the nearest ones are near by chance only."""
    words, vectors = indexes.get("keyword"), indexes.get("dense")
    if not (isinstance(words, KeywordIndex) and isinstance(vectors, VectorIndex)):
        return False
    return not words.search(text, 1) and not vectors.has_similar(text)


_ORIGINALS = "originals"


class Originals:
    """The copies of the files of one owner.

    Attributes:
        lock: excludes the removal of copies until the catalogue names new ones.
    """

    def __init__(self, catalogue: Catalogue, home: Path) -> None:
        self._catalogue = catalogue
        self._home = home
        self.lock = threading.Lock()

    def add(self, data: bytes) -> str:
        """Write the copy of a file if it is missing, and return its name; the caller holds `lock`.

        Raises:
            OSError: it cannot be written.
        """
        name = sha256(data).hexdigest()
        _write(self._folder / name, data)
        return name

    def path_of(self, document_id: str) -> Path | None:
        """Return the copy of the file of a document; None if there is none."""
        name = self._catalogue.original(document_id)
        if name is None or not str(name).isalnum():  # a damaged cell must not name another folder
            return None
        path = self._folder / str(name)
        return path if path.is_file() else None

    def delete_unused(self) -> None:
        """Delete the copies that no document of the owner names, and unfinished ones."""
        if not (self._home / _ORIGINALS).is_dir():
            return
        with self.lock:
            used = self._catalogue.originals_in_use()
            for path in self._folder.glob("*"):
                if path.name not in used:
                    path.unlink(missing_ok=True)

    @cached_property
    def _folder(self) -> Path:
        owner = sha256(self._catalogue.owner.encode()).hexdigest()[:16]
        return self._home / _ORIGINALS / self._catalogue.id() / owner


def _write(path: Path, data: bytes) -> None:
    """Write a file so that it is complete or missing, also after a power failure."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    with draft.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(path)
