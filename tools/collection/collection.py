"""A collection of documents: the catalogue, its indexes, and search over them."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from sleuth.tools.collection.batch_reader import Batch, BatchReader
from sleuth.tools.collection.folder_diff import FolderDiff, compare_folder
from sleuth.tools.collection.index_set import IndexSet, OnIndexed
from sleuth.tools.collection.originals import Originals
from sleuth.tools.collection.passage_analysis import PassageAnalyzer, Workers
from sleuth.tools.collection.ray_cluster import RayEmbedder, RayWorkers
from sleuth.tools.documents.file_list import Item, list_files
from sleuth.tools.documents.parallel_reading import LocalWorkers, default_workers
from sleuth.tools.documents.resource_limits import Bounds
from sleuth.tools.errors import StoreError, UsageError, VectorsReplaced
from sleuth.tools.search import Mode, Query
from sleuth.tools.search.index import Index, IndexName
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.knowledge_graph import NameGraphCache, search_knowledge_graph
from sleuth.tools.search.ranking import MODEL, search_graph
from sleuth.tools.search.reranker import CANDIDATES, EndpointReranker, Reranker, rerank_best
from sleuth.tools.search.retriever import fetch_depth, fuse
from sleuth.tools.search.vectors import NONE, Embedder, NoEmbedder, VectorIndex
from sleuth.tools.search.vectors.embedder import LocalEmbedder, make_embedder
from sleuth.tools.search.vectors.index import embedder_changed
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue, Entry, Listed, Stored
from sleuth.tools.storage.database import catalogue_url, in_thread, warn_of_loss
from sleuth.tools.storage.filters import parse_filter
from sleuth.tools.storage.locks import require_restored
from sleuth.tools.types import Hit

_log = logging.getLogger(__name__)

MAX_FILTERS = 16
"""Filters whose passages are kept in memory."""


def _ignore(_index: IndexName, _passages: int) -> None:
    """Ignore progress."""


class Collection:
    """Documents and passages of one collection, and search over them: a Retriever.

    The caller holds the lock on SLEUTH_HOME: exclusive for writing, shared for searching.
    """

    def __init__(self, settings: Settings, catalogue: Catalogue, embedder: Embedder) -> None:
        """Use `Collection.open`."""
        self._settings = settings
        self._catalogue = catalogue
        self.document = in_thread(catalogue.get_document)
        self.complete_id = in_thread(catalogue.complete_id)
        self.passages = in_thread(catalogue.passages)
        self.passages_of = in_thread(catalogue.passages_of)
        self.passage_ids = in_thread(catalogue.passage_ids)
        self.version = in_thread(catalogue.head)
        self.triples = catalogue.triples
        self._embedder = embedder
        self._has_warned = False
        self.reranker: Reranker | None = EndpointReranker(settings) if settings.reranker else None
        self.search_slots = asyncio.Semaphore(4)  # searches at a time: asyncio has more threads, for other owners
        self._ranking_model = MODEL if settings.ranker == "trained" else None
        self._workers = make_workers(settings)
        self.stop_workers = in_thread(self._workers.stop)
        self._analyzer = PassageAnalyzer(self._workers)
        self._indexes = IndexSet(settings, catalogue, embedder, self._analyzer)
        self._matching = lru_cache(maxsize=MAX_FILTERS)(
            lambda where, _head: catalogue.matching_passages(parse_filter(where))
        )
        self._originals = Originals(catalogue, settings.home)
        self.original = in_thread(self._originals.path_of)
        self._knowledge = NameGraphCache(catalogue, self._indexes.name_vectors_file, embedder)
        self.knowledge_graph = in_thread(self._knowledge.graph)
        self._reader = BatchReader(catalogue, self._workers)

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder; None if SLEUTH_EMBEDDER is none."""
        return None if isinstance(self._embedder, NoEmbedder) else self._embedder

    @property
    def slowest(self) -> IndexName:
        """Return the name of the index that is updated last."""
        return self._indexes.names[-1]

    @property
    def notes(self) -> list[str]:
        """Return a line for each repair of an index since the collection was opened."""
        return self._indexes.notes

    @classmethod
    @in_thread
    def open(cls, settings: Settings, *, embedder: Embedder | None = None, check_embedder: bool = True) -> Self:
        """Open the collection of the settings; indexes and models are loaded when they are first needed.

        Raises:
            EmbedderChanged: the collection was built with another embedder (unless `check_embedder` is off, which
                only a rebuild may ask for).
            StoreTooNew: a newer release wrote it.
        """
        embedder = embedder or make_passage_embedder(settings)
        try:
            settings.home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"SLEUTH_HOME ({settings.home}) cannot be created: {error}. Set it to another folder."
            ) from error
        require_restored(settings.home)
        if settings.latest_only:
            _log.warning("SLEUTH_LATEST_ONLY has no effect: filter the documents with --where.")
        if not settings.example_questions:
            _log.warning("SLEUTH_EXAMPLE_QUESTIONS has no effect: the server no longer writes example questions.")
        url = catalogue_url(settings.home, settings.database_url)
        if settings.database_url is None:
            warn_of_loss(settings.home / "catalogue.db", settings.home.glob("keywords/*"))
        catalogue = Catalogue(url, owner=settings.owner, collection=settings.collection)
        built_with = catalogue.embedder()
        if check_embedder and built_with is not None and embedder.name not in (built_with, NONE):
            catalogue.close()
            raise embedder_changed(settings.collection, built_with, embedder.name)
        gc.freeze()  # what is loaded by now stays; a full collection of it during a search takes longer than the search
        return cls(settings, catalogue, embedder)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @in_thread
    def close(self) -> None:
        """Close the workers, indexes and connections."""
        self._workers.close()
        self._indexes.close()
        self._catalogue.close()

    @in_thread
    def list_files(self, roots: Sequence[Path], only: Container[Path] | None = None) -> tuple[list[Item], list[str]]:
        """Return the files for `ingest_files`, and a line for each one passed over, as `list_files` does."""
        return list_files(roots, loaders=self._settings.loaders, only=only)

    @in_thread
    def compare_folder(self, folder: Path, changed: Set[Path] | None = None) -> FolderDiff:
        """Return the differences between a folder and this collection, as `folder_diff.compare_folder` does."""
        home, loaders = self._settings.home.absolute(), self._settings.loaders
        try:
            return compare_folder(
                folder, changed, catalogue=self._catalogue, reader=self._reader, loaders=loaders, home=home
            )
        finally:
            self._workers.stop()

    async def ingest_files(
        self,
        files: Sequence[Item],
        *,
        stopped: Callable[[], bool] = lambda: False,
        meta: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncIterator[tuple[Batch, Stored]]:
        """Read files and store their documents, except unchanged ones; yield each batch when it is stored.

        When `stopped` returns True, it ends after the present document. If `keep_originals` is on, the files are
        copied, also those of unchanged documents. The documents get the own fields `meta`. `stop_workers` ends the
        worker processes.
        """
        batches = self._reader.batches(files, stopped)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            batch.entries = [replace(entry, given=meta) for entry in batch.entries]
            if self._settings.keep_originals:
                stored = await asyncio.to_thread(self._originals.put, batch, self._put)
            else:
                stored = await self.put(batch.entries)
            await asyncio.to_thread(self._analyzer.start, *batch.new_passages(stored))
            new = [id for id, difference in stored.differences.items() if difference != "unchanged"]
            copies = await asyncio.to_thread(self._catalogue.copies, new)
            sources = {entry.document.id: entry.document.source for entry in batch.entries}
            batch.notes += [f"{sources[id]}: has the same text as {other}." for id, other in copies.items()]
            yield batch, stored

    @in_thread
    def put(self, entries: Sequence[Entry]) -> Stored:
        """Store documents in one transaction; the indexes are updated by `catch_up` or the next search."""
        return self._put(entries)

    def _put(self, entries: Sequence[Entry]) -> Stored:
        self._indexes.reset_if_ahead()
        if self.embedder is not None and self._catalogue.embedder() is None:
            self._catalogue.set_embedder(self.embedder.name)
        return self._catalogue.put_documents(entries)

    async def delete(self, document_ids: Sequence[str]) -> int:
        """Delete documents from the catalogue and all indexes; raise UnknownName and delete none for an unknown one."""
        known = await asyncio.to_thread(self._catalogue.sources_of_ids, document_ids)
        for id_ in document_ids:
            if id_ not in known:
                await self.document(id_)  # raises UnknownName
        await asyncio.to_thread(self._indexes.reset_if_ahead)
        deleted = await asyncio.to_thread(self._catalogue.delete_documents, document_ids)
        await asyncio.to_thread(self._originals.delete_unused)  # on a full disk, the indexes need their space
        for name in await asyncio.to_thread(self._indexes.filled):  # the next search rebuilds one without files
            await asyncio.to_thread(self._indexes.ready, name, _ignore)
        await self.finish_change()
        return deleted

    @in_thread
    def documents(self, *, limit: int = 100, after: str = "", find: str = "", where: str = "") -> list[Listed]:
        """Return documents after an id, in order of ids, with `find` in their title and matching a filter."""
        conditions = parse_filter(where) if where.strip() else None
        return self._catalogue.list_documents(limit=limit, after=after, find=find, where=conditions)

    @in_thread
    def known_ids(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that belong to a passage or a document."""
        return {passage.id for passage in self._catalogue.passages(ids)} | self._catalogue.sources_of_ids(ids).keys()

    @in_thread
    def fingerprint(self) -> str:
        """Return a SHA-256 over the id, title and text of all passages: equal collections have equal ones."""
        digest = sha256()
        for passage in self._catalogue.passages(sorted(self._catalogue.passage_ids())):
            digest.update(f"{passage.id}\0{passage.fingerprint()}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @in_thread
    def count(self) -> tuple[int, int]:
        """Return the numbers of documents and passages."""
        return self._catalogue.count_documents(), self._catalogue.count_passages()

    async def search(self, query: Query) -> list[Hit]:
        """Return the best `query.k` passages, best first; hits of graph search contain an explanation.

        Raises:
            UsageError: the collection or the question is empty, the filter cannot be parsed, or the mode is dense
                without an embedder. Hybrid search then uses the keyword index only, and logs that once.
        """
        checked = query.checked()
        if checked.mode == "graph-ppr":
            _log.warning("Search mode graph-ppr is now graph, and its name will be removed: use graph.")
            checked = replace(checked, mode="graph")
        await self.require_documents()
        wanted = replace(checked, k=max(checked.k, CANDIDATES)) if self.reranker else checked
        async with self.search_slots:
            hits = await asyncio.to_thread(self._search, wanted)
        return (await rerank_best(self.reranker, checked.text, hits))[: checked.k] if self.reranker else hits

    @in_thread
    def require_documents(self, where: str = "") -> None:
        """Raise UsageError if the collection is empty, or none of its documents matches the filter."""
        if self._catalogue.is_empty():
            raise UsageError(
                f"Collection {self._settings.collection!r} has no documents yet: `sleuth ingest PATH` adds some."
            )
        if where.strip() and not self._filtered(where):
            raise UsageError(
                f"No document matches the filter {where!r}. `sleuth docs list` shows the documents, `sleuth ingest` "
                "adds metadata to those that an older release ingested."
            )

    async def catch_up(self, *, on_indexed: OnIndexed = _ignore) -> None:
        """Update the indexes from the catalogue; call `on_indexed` with the number of passages written."""
        for name in self._indexes.names:
            await asyncio.to_thread(self._indexes.ready, name, on_indexed)

    @in_thread
    def finish_change(self) -> None:
        """Delete unused vectors, names and file copies of deleted passages. Call this at the end of every change."""
        self._knowledge.prune()
        self._originals.delete_unused()
        self._indexes.finish()

    async def rebuild(self, *, on_indexed: OnIndexed = _ignore) -> None:
        """Rebuild the indexes from the catalogue with the present embedder; after a kill, the next use resumes it."""
        await asyncio.to_thread(self._indexes.clear)
        await self.catch_up(on_indexed=on_indexed)
        await self.finish_change()

    def _wanted(self, mode: Mode) -> tuple[IndexName, ...]:
        if mode == "keyword" or mode == "dense":  # noqa: PLR1714 - mypy narrows the type by these
            return (mode,)
        if mode == "knowledge-graph":
            return ("dense",)
        if mode != "hybrid":
            return self._indexes.names
        if "dense" not in self._indexes.names and not self._has_warned:
            self._has_warned = True
            _log.warning("SLEUTH_EMBEDDER is none: hybrid search uses the keyword index only.")
        return tuple(name for name in self._indexes.names if name != "graph")

    def _filtered(self, where: str) -> frozenset[str]:
        """Return the passages of the documents that match a filter, cached until the next change."""
        return self._matching(where, self._catalogue.head())

    def _search(self, query: Query) -> list[Hit]:
        """Return the best passages; of documents with the same text only the first is found."""
        hits = self._search_once(query)
        if len(self._without_copies(hits)) == len(hits):
            return hits
        unique = self._without_copies(self._search_once(replace(query, k=2 * query.k)))
        return [replace(hit, rank=rank) for rank, hit in enumerate(unique[: query.k], start=1)]

    def _without_copies(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        if len({(hit.passage.start, hit.passage.text) for hit in hits}) == len(hits):  # as a rule: no query is needed
            return hits
        hashes = self._catalogue.content_hashes([hit.passage.document_id for hit in hits])
        first: dict[tuple[str | None, int], str] = {}
        places = [(hashes.get(hit.passage.document_id), hit.passage.start) for hit in hits]
        for place, hit in zip(places, hits, strict=True):
            first.setdefault(place, hit.passage.document_id)
        return [hit for place, hit in zip(places, hits, strict=True) if first[place] == hit.passage.document_id]

    def _search_once(self, query: Query) -> list[Hit]:
        try:
            return self._search_indexes(query)
        except VectorsReplaced:
            self._indexes.invalidate("dense")
            return self._search_indexes(query)

    def _search_indexes(self, query: Query) -> list[Hit]:
        head = self._catalogue.head()
        indexes = {name: self._indexes.for_search(name, head) for name in self._wanted(query.mode)}
        allowed = self._filtered(query.where) if query.where.strip() else None
        if allowed is not None:
            indexes = {name: index.restricted(allowed) for name, index in indexes.items()}
            query = replace(query, seen=query.seen & allowed)
        if _matches_nothing(query.text, indexes):
            return []
        if query.mode == "graph":
            return search_graph(query, indexes, self._catalogue.passages, self._ranking_model)
        if query.mode == "knowledge-graph":
            graph, fetch, count = self._knowledge.graph(), self._catalogue.passages, self._catalogue.count_passages()
            return search_knowledge_graph(query, indexes, fetch, graph, passages=count, allowed=allowed)
        searched = (each for each in indexes.values() if isinstance(each, KeywordIndex | VectorIndex))
        lists = [index.search(query.text, fetch_depth(query.k)) for index in searched]
        best = (fuse(lists) if len(lists) > 1 else lists[0])[: query.k]
        passages = {passage.id: passage for passage in self._catalogue.passages([id_ for id_, _ in best])}
        found = [(passages[id_], score) for id_, score in best if id_ in passages]
        return [Hit(passage=passage, score=score, rank=rank) for rank, (passage, score) in enumerate(found, start=1)]


def _matches_nothing(text: str, indexes: Mapping[IndexName, Index]) -> bool:
    """Return whether no passage has a word of a text, and the nearest ones are near by chance only."""
    words, vectors = indexes.get("keyword"), indexes.get("dense")
    if not (isinstance(words, KeywordIndex) and isinstance(vectors, VectorIndex)):
        return False
    return not words.search(text, 1) and not vectors.has_similar(text)


def make_workers(settings: Settings) -> Workers:
    """Return the workers of an ingest; those of a cluster are connected when they are first needed."""
    bounds = Bounds(
        seconds=settings.file_seconds,
        megabytes=settings.file_megabytes,
        characters=settings.file_characters,
        ocr_languages=settings.ocr_languages,
    )
    if settings.ray:
        return RayWorkers(settings.ray, loaders=settings.loaders, bounds=bounds)
    return LocalWorkers(settings.ingest_workers or default_workers(), loaders=settings.loaders, bounds=bounds)


def make_passage_embedder(settings: Settings) -> Embedder:
    """Return the embedder of the settings; with a cluster, a model that is loaded here embeds passages there."""
    embedder = make_embedder(settings)
    if settings.ray and isinstance(embedder, LocalEmbedder):
        return RayEmbedder(settings.ray, embedder)
    return embedder
