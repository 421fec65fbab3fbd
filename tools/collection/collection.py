"""One owner's collection behind one door: the catalogue, its indexes, and search over them."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from sleuth.tools.collection.batch_reader import Batch, Intake, Place, never
from sleuth.tools.collection.index_set import Indexes, OnIndexed
from sleuth.tools.documents import Bounds, FileScan, write_worklist
from sleuth.tools.errors import StoreError, UsageError, VectorsReplaced
from sleuth.tools.search import (
    Index,
    IndexName,
    KeywordIndex,
    Mode,
    Query,
    fetch_depth,
    fuse,
    search_graph,
    search_pagerank,
)
from sleuth.tools.search.pagerank import TripleCache
from sleuth.tools.search.ranking import MODEL
from sleuth.tools.search.vectors import NONE, Embedder, NoEmbedder, VectorIndex, embedder_changed, make_embedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage import Catalogue, Entry, Listed, Readings, SqlTriples, Stored, catalogue_url
from sleuth.tools.text import check_unicode
from sleuth.tools.types import Document, EmbedderRecord, Hit, Passage

_log = logging.getLogger(__name__)


def _ignore(_index: IndexName, _passages: int) -> None:
    """Progress that nobody watches."""


class Library:
    """Documents and passages of one collection, and search over them: a Retriever.

    Writing needs the exclusive lock of `locks.hold`, searching the shared one; the caller holds them.
    """

    def __init__(self, settings: Settings, catalogue: Catalogue, embedder: Embedder) -> None:
        """Use `Library.open`."""
        self._settings = settings
        self._catalogue = catalogue
        self._embedder = embedder
        self._told = self._trusted = False
        self._model = MODEL if settings.ranker == "trained" else None
        self._indexes = Indexes(settings, catalogue, embedder)
        self._triples = TripleCache(catalogue)
        bounds = Bounds(
            seconds=settings.file_seconds, megabytes=settings.file_megabytes, characters=settings.file_characters
        )
        self._intake = Intake(catalogue, loaders=settings.loaders, bounds=bounds)

    @property
    def embedder(self) -> Embedder | None:
        """What texts can be compared with; None where SLEUTH_EMBEDDER is none."""
        return None if isinstance(self._embedder, NoEmbedder) else self._embedder

    @property
    def slowest(self) -> IndexName:
        """The index that a passage enters last."""
        return self._indexes.names[-1]

    @property
    def notes(self) -> list[str]:
        """Lines about what had to be mended since the library was opened."""
        return self._indexes.notes

    @classmethod
    async def open(cls, settings: Settings, *, embedder: Embedder | None = None, check_embedder: bool = True) -> Self:
        """Opens the collection that the settings name; indexes and models are loaded when they are first needed.

        Raises:
            EmbedderChanged: the collection was built with another embedder (unless `check_embedder` is off, which
                only a rebuild may ask for).
            StoreTooNew: a newer release wrote it.
        """
        return await asyncio.to_thread(cls._open, settings, embedder, check_embedder)

    @classmethod
    def _open(cls, settings: Settings, given: Embedder | None, check_embedder: bool) -> Self:
        embedder = given or make_embedder(settings)
        try:
            settings.home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"SLEUTH_HOME ({settings.home}) cannot be made: {error}. Set it to another folder."
            ) from error
        url = catalogue_url(settings.home, settings.database_url)
        catalogue = Catalogue(url, owner=settings.owner, collection=settings.collection)
        record = catalogue.embedder()
        mixed = record is not None and embedder.name not in (record.name, NONE)
        if check_embedder and record is not None and mixed:
            catalogue.close()
            raise embedder_changed(settings.collection, record.name, embedder.name)
        return cls(settings, catalogue, embedder)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes whatever was opened."""
        await asyncio.to_thread(self._intake.close)
        await asyncio.to_thread(self._indexes.close)
        await asyncio.to_thread(self._catalogue.close)

    async def list_files(self, worklist: Path, roots: Sequence[Path]) -> FileScan:
        """Writes down which files `take_in` will read; raises UsageError for a root that is not there."""
        return await asyncio.to_thread(write_worklist, worklist, roots, loaders=self._settings.loaders)

    async def take_in(
        self, worklist: Path, place: Place, *, stopped: Callable[[], bool] = never
    ) -> tuple[Batch, Stored]:
        """Reads the next batch of a work-list and stores it; unchanged documents are left alone.

        Where `stopped` says so the batch ends with the document that is being read.
        """
        batch = await asyncio.to_thread(self._intake.read, worklist, place, stopped)
        return batch, await self.put(batch.entries)

    def triples(self, *, model: str) -> SqlTriples:
        """What a model has found in this collection's passages; they go with the passages."""
        return self._catalogue.triples(model=model)

    @property
    def readings(self) -> Readings:
        """What all models have found in this collection's passages; its methods block."""
        return self._catalogue.readings()

    async def put(self, entries: Sequence[Entry]) -> Stored:
        """Stores documents in one transaction; the indexes follow at `catch_up` or at the next search."""
        return await asyncio.to_thread(self._put, entries)

    async def delete(self, document_ids: Sequence[str]) -> int:
        """Deletes documents everywhere; raises UnknownName, and deletes nothing, if one of them is not there."""
        known = await asyncio.to_thread(self._catalogue.sources_of_ids, document_ids)
        for id_ in document_ids:
            if id_ not in known:
                await self.document(id_)  # says what it is that is not there
        deleted = await asyncio.to_thread(self._delete, document_ids)
        await self.catch_up()
        return deleted

    async def document(self, document_id: str) -> Document:
        """One document with its text; raises UnknownName with the nearest id where there is none."""
        return await asyncio.to_thread(self._catalogue.get_document, document_id)

    async def documents(self, *, limit: int = 100, after: str = "", find: str = "") -> list[Listed]:
        """Documents with `find` in their title by id, a page at a time: pass the last id seen as `after`."""
        return await asyncio.to_thread(self._catalogue.list_documents, limit=limit, after=after, find=find)

    async def passages_of(self, document_id: str) -> list[Passage]:
        """A document's passages in their order."""
        return await asyncio.to_thread(self._catalogue.passages_of, document_id)

    async def passages(self, ids: Sequence[str]) -> list[Passage]:
        """The passages with these ids, in this order; those that are gone are left out."""
        return await asyncio.to_thread(self._catalogue.passages, ids)

    async def known_ids(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that are a passage's or a document's."""
        passages = await self.passages(ids)
        documents = await asyncio.to_thread(self._catalogue.sources_of_ids, ids)
        return {passage.id for passage in passages} | documents.keys()

    async def fingerprint(self) -> str:
        """SHA-256 over every passage's id, title and text: equal collections have equal ones."""
        return await asyncio.to_thread(self._fingerprint)

    async def count(self) -> tuple[int, int]:
        """How many documents and how many passages there are."""
        return await asyncio.to_thread(lambda: (self._catalogue.count_documents(), self._catalogue.count_passages()))

    async def search(self, query: Query) -> list[Hit]:
        """The best `query.k` passages, best first; what graph search finds explains itself.

        Raises:
            UsageError: the collection is empty, the question is, or the mode is dense where there is no embedder;
                hybrid then goes by words alone, and says so once in the log.
        """
        if not query.text.strip():
            raise UsageError("The question is empty: say what to search for.")
        check_unicode(query.text)
        return await asyncio.to_thread(self._search, query)

    async def index_seconds(self, mode: Mode) -> float | None:
        """How long the indexes that a mode needs have worked in all; None where that was not kept for one of them."""
        seconds = await asyncio.to_thread(self._catalogue.timings().seconds)
        wanted = self._wanted(mode)
        return sum(seconds[name] for name in wanted) if seconds.keys() >= set(wanted) else None

    async def require_documents(self) -> None:
        """Raises UsageError where there is nothing to search yet."""
        await asyncio.to_thread(self._require_documents)

    def _require_documents(self) -> None:
        if self._catalogue.is_empty():
            raise UsageError(
                f"Collection {self._settings.collection!r} has no documents yet: `sleuth ingest PATH` reads some in."
            )

    async def catch_up(self, *, on_indexed: OnIndexed = _ignore) -> None:
        """Brings the indexes to the catalogue's state; `on_indexed` is told of passages as they are written."""
        for name in self._indexes.names:
            await asyncio.to_thread(self._indexes.ready, name, on_indexed)
        await asyncio.to_thread(self._indexes.forget_deleted)

    async def rebuild(self, *, on_indexed: OnIndexed = _ignore) -> None:
        """Builds the indexes anew from the catalogue, with the present embedder."""
        await asyncio.to_thread(self._indexes.clear)
        await self.catch_up(on_indexed=on_indexed)

    def _wanted(self, mode: Mode) -> tuple[IndexName, ...]:
        if mode == "keyword" or mode == "dense":  # noqa: PLR1714 - mypy narrows the type by these
            return (mode,)
        if mode != "hybrid":
            return self._indexes.names
        if "dense" not in self._indexes.names and not self._told:
            self._told = True
            _log.warning("SLEUTH_EMBEDDER is none: hybrid search goes by words alone.")
        return tuple(name for name in self._indexes.names if name != "graph")

    def _fingerprint(self) -> str:
        digest = sha256()
        for passage in self._catalogue.passages(sorted(self._catalogue.passage_ids())):
            digest.update(f"{passage.id}\0{passage.fingerprint()}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def _delete(self, document_ids: Sequence[str]) -> int:
        self._trust()
        return self._catalogue.delete_documents(document_ids)

    def _trust(self) -> None:
        """Before the first change: what the indexes know has to be of this catalogue."""
        if not self._trusted:
            self._indexes.distrust()
            self._trusted = True

    def _put(self, entries: Sequence[Entry]) -> Stored:
        self._trust()
        if self.embedder is not None and self._catalogue.embedder() is None:
            self._catalogue.set_embedder(EmbedderRecord(name=self.embedder.name, dimension=None))
        return self._catalogue.put_documents(entries)

    def _search(self, query: Query) -> list[Hit]:
        self._require_documents()
        try:
            return self._found(query)
        except VectorsReplaced:
            self._indexes.look_again("dense")
            return self._found(query)

    def _found(self, query: Query) -> list[Hit]:
        indexes = {name: self._indexes.ready(name, _ignore) for name in self._wanted(query.mode)}
        if query.mode == "graph":
            return search_graph(query, indexes, self._catalogue.passages, self._model)
        if query.mode == "graph-ppr":
            return self._walk(query, indexes)
        return self._find(query, [each for each in indexes.values() if isinstance(each, KeywordIndex | VectorIndex)])

    def _walk(self, query: Query, indexes: Mapping[IndexName, Index]) -> list[Hit]:
        return search_pagerank(query, indexes, self._catalogue.passages, self._triples.graph())

    def _find(self, query: Query, indexes: Sequence[KeywordIndex | VectorIndex]) -> list[Hit]:
        lists = [index.search(query.text, fetch_depth(query.k)) for index in indexes]
        best = (fuse(lists) if len(lists) > 1 else lists[0])[: query.k]
        passages = {passage.id: passage for passage in self._catalogue.passages([id_ for id_, _ in best])}
        found = [(passages[id_], score) for id_, score in best if id_ in passages]
        return [Hit(passage=passage, score=score, rank=rank) for rank, (passage, score) in enumerate(found, start=1)]
