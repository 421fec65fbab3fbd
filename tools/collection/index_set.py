"""The indexes of a collection, opened when first needed and updated from the catalogue before each use.

An index is updated from the journal of the catalogue; if their numbers of passages differ, the ids are compared. All
operations may be repeated: a change is written to an index before it is recorded as applied, so a kill in between
loses nothing. All functions and methods block: call them in a thread.
"""

import logging
import threading
from collections import ChainMap, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from sleuth.tools.errors import StoreBusy, StoreError, needs_part
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.index import Index, IndexName
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.vectors import Embedder, NoEmbedder, VectorIndex
from sleuth.tools.search.vectors.chroma_index import ChromaIndex
from sleuth.tools.search.vectors.embedder import no_embedder
from sleuth.tools.search.vectors.index import MAX_EXACT
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.disk import remedy_of
from sleuth.tools.storage.locks import changing_processes
from sleuth.tools.text.language import KeywordTerms, find_terms
from sleuth.tools.text.names import PassageNames, find_names
from sleuth.tools.types import Passage

_log = logging.getLogger(__name__)

ALL: tuple[IndexName, ...] = ("keyword", "graph", "dense")

OnIndexed = Callable[[IndexName, int], None]

# Seconds that a search or a backup waits for another process that updates or copies the indexes.
_INDEXING_SECONDS = 60.0
# Passages per write: enough to fill embedding batches, few enough to show progress.
_BATCH = 256
_JOURNAL_PAGE = 512


def ignore(_index: IndexName, _passages: int) -> None:
    """Ignore progress."""


class IndexSet:
    """Keyword index, entity graph and vectors; `notes` has a line for each repair, `analyzer` analyzes passages."""

    def __init__(self, settings: Settings, catalogue: Catalogue, embedder: Embedder) -> None:
        self.notes: list[str] = []
        self.analyzer = PassageAnalyzer()
        self._settings = settings
        self._catalogue = catalogue
        self._embedder = embedder
        self._open: dict[IndexName, Index] = {}
        self._applied: dict[IndexName, int] = {}
        self._turn = threading.Lock()
        self._is_checked = False
        self._has_warned = False
        self._is_closing = threading.Event()
        # The hash distinguishes names that some file systems treat as equal, and makes ".." harmless.
        mark = sha256(f"{settings.owner}\0{settings.collection}".encode()).hexdigest()[:12]
        self._file_name = f"{settings.collection}-{mark}"

    @property
    def names(self) -> tuple[IndexName, ...]:
        """Return the indexes in use, the slowest last; without an embedder there are no vectors."""
        return ALL[:-1] if isinstance(self._embedder, NoEmbedder) else ALL

    @property
    def name_vectors_file(self) -> Path:
        """Return the file of the vectors of names in triples."""
        return self._settings.home / "names" / f"{self._file_name}.npz"

    def close(self) -> None:
        """Close the open indexes; indexing in another thread stops after its present batch."""
        self._is_closing.set()
        with self._turn:
            for index in self._open.values():
                index.close()
            self._open.clear()

    def ready(self, name: IndexName, on_indexed: OnIndexed, head: int | None = None) -> Index:
        """Return an index that is up to date with the catalogue.

        Args:
            name: the index.
            on_indexed: is called with the name and the number of passages after each write.
            head: sequence number of the catalogue's last change, if already read.

        Raises:
            EmbedderChanged: the vectors are those of another embedder.
            UsageError: vectors are requested without an embedder.
        """
        if name not in self.names:
            raise no_embedder()
        with self._turn:
            if self._is_closing.is_set():
                raise StoreError("The collection is closed.")
            if self._applied.get(name) != (self._catalogue.head() if head is None else head):
                with hold_indexes(self._settings.home):
                    self._follow(name, on_indexed)
            return self._open[name]

    def for_search(self, name: IndexName, head: int) -> Index:
        """Return an index that is up to date, or, while documents are changed, with the passages indexed so far.

        The arguments and errors are those of `ready`.
        """
        home = self._settings.home
        if self._applied.get(name) == head or not (holders := changing_processes(home)):
            return self.ready(name, ignore, head)
        if not self._has_warned:
            self._has_warned = True
            _log.warning("%s is in use by %s. Searches find what is indexed so far.", home, holders)
        if name in self._open and self._turn.locked():  # this process is changing them
            return self._open[name]
        with self._turn:
            return self._opened(name)

    def invalidate(self, name: IndexName) -> None:
        """Forget an index that another process has rebuilt; the next `ready` loads and updates it."""
        with self._turn:
            self._applied.pop(name, None)

    def clear(self) -> None:
        """Empty the indexes, also the vectors of another embedder."""
        with self._turn, hold_indexes(self._settings.home):
            for name in self.names:
                self._opened(name).clear()
            if "dense" in self.names:
                self._catalogue.set_embedder(self._embedder.name)
            self._applied.clear()

    def reset_if_ahead(self) -> None:
        """Clear indexes that are ahead of the catalogue, which happens after restoring it from an older backup.

        Call this before a change is written: its sequence number may already be used by an index. Only the first call
        of a process does something.
        """
        if self._is_checked:
            return
        names = self.names if self._catalogue.embedder() is None else ALL
        with self._turn, hold_indexes(self._settings.home):
            for name in names:
                if (index := self._opened(name)).reached() > self._catalogue.head():
                    index.clear()
        self._is_checked = True

    def filled(self) -> list[IndexName]:
        """Return the indexes that may contain something."""
        with self._turn, hold_indexes(self._settings.home):
            return [name for name in self.names if self._opened(name).reached()]

    def finish(self) -> None:
        """Tidy the vectors at the end of a change; without an embedder, delete those of deleted passages."""
        if self._catalogue.embedder() is None:
            return
        with self._turn, hold_indexes(self._settings.home):
            vectors = self._opened("dense")
            assert isinstance(vectors, VectorIndex)
            if "dense" not in self.names:
                _update(self._catalogue, vectors, sorted(vectors.ids() - self._catalogue.passage_ids()))
                return
            vectors.tidy()

    def _follow(self, name: IndexName, on_indexed: OnIndexed) -> None:
        index = self._opened(name)
        if isinstance(index, VectorIndex):
            index.check_embedder()
            if self._catalogue.embedder() is None:  # documents were first ingested without one
                self._catalogue.set_embedder(self._embedder.name)
        indexed = 0

        def count(passages: int) -> None:
            nonlocal indexed
            indexed += passages
            on_indexed(name, passages)
            if self._is_closing.is_set():
                raise StoreError("The collection was closed during indexing; the next start resumes it.")

        catch_up(self._catalogue, index, on_indexed=count)
        if name not in self._applied and (note := repair(self._catalogue, index, on_indexed=count)):
            self.notes.append(note)
        if isinstance(index, VectorIndex) and indexed > MAX_EXACT:  # more than a batch of an ingest
            index.tidy()
        self._applied[name] = index.applied()

    def _opened(self, name: IndexName) -> Index:
        """Return an index that includes the writes of other processes."""
        with _locked(self._settings.home / "locks" / "opening.lock"):
            if name in self._open:
                self._open[name].refresh()
            else:
                self._open[name] = self._make(name)
        return self._open[name]

    def _make(self, name: IndexName) -> Index:
        home = self._settings.home
        if name == "keyword":
            return KeywordIndex(home / "keywords" / self._file_name, self.analyzer.terms)
        if name == "graph":
            return GraphIndex(home / "mentions" / f"{self._file_name}.db", self.analyzer.names)
        built_with = None if "dense" in self.names else self._catalogue.embedder()
        return open_vectors(self._settings, NoEmbedder(built_with) if built_with else self._embedder)


@contextmanager
def hold_indexes(home: Path) -> Iterator[None]:
    """Exclude other processes that write the indexes of a home: two that only search may both have to update one.

    Raises:
        StoreBusy: another process has held the lock for a minute.
        StoreError: the folder of the lock cannot be written.
    """
    with _locked(home / "locks" / "indexing.lock"):
        yield


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        turn = FileLock(file).acquire(timeout=_INDEXING_SECONDS)
    except Timeout:  # a kind of OSError
        raise StoreBusy("Another process is updating or copying the indexes. Try again later.") from None
    except OSError as error:
        home = file.parent.parent
        advice = remedy_of(file, "Free some space.")
        raise StoreError(f"SLEUTH_HOME ({home}) cannot be written: {error}. {advice}") from error
    with turn:
        yield


def catch_up(catalogue: Catalogue, index: Index, *, on_indexed: Callable[[int], None]) -> None:
    """Apply the rest of the journal to an index."""
    seq = index.applied()
    if index.reached() > catalogue.head():  # the catalogue was restored from an older backup
        index.clear()
        seq = 0
    while changes := catalogue.changes(seq, limit=_JOURNAL_PAGE):
        # Only the present state matters: a passage that was added and then deleted is never embedded.
        seq = changes[-1].seq
        index.set_reached(seq)
        changed = dict.fromkeys(id_ for change in changes for id_ in change.passage_ids)
        _update(catalogue, index, list(changed), on_indexed)
        index.set_applied(seq)


def repair(catalogue: Catalogue, index: Index, *, on_indexed: Callable[[int], None]) -> str | None:
    """Make an index equal to the catalogue if their numbers of passages differ; return a line about it, or None.

    Passages that an ingest adds meanwhile are not a difference: they are indexed from the journal first.
    """
    while index.count() != catalogue.count_passages():
        if catalogue.head() == index.applied():
            break
        catch_up(catalogue, index, on_indexed=on_indexed)
    else:
        return None
    have, want = index.ids(), catalogue.passage_ids()
    missing, left_over = sorted(want - have), sorted(have - want)
    _update(catalogue, index, [*left_over, *missing], on_indexed)
    return f"{index.name}: {len(missing)} passages were missing and {len(left_over)} left over; repaired."


def _update(
    catalogue: Catalogue, index: Index, ids: Sequence[str], on_indexed: Callable[[int], None] = lambda _passages: None
) -> None:
    """Write the present state of these passages to an index: those that the catalogue does not have are deleted."""
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        present = catalogue.passages(batch)
        present_ids = {passage.id for passage in present}
        index.apply(upsert=present, delete=[id_ for id_ in batch if id_ not in present_ids])
        on_indexed(len(present))


def open_vectors(settings: Settings, embedder: Embedder) -> VectorIndex:
    """Open or create the vectors of the collection in the settings.

    Raises:
        UsageError: pgvector is set without a Postgres.
    """
    options: dict[str, Any] = {"owner": settings.owner, "collection": settings.collection, "embedder": embedder}
    if settings.vectors == "chroma":
        return ChromaIndex(settings.chroma_url or settings.home / "chroma", **options)
    with needs_part("postgres", "SLEUTH_VECTORS=pgvector"):
        from sleuth.tools.search.vectors.pgvector_index import PgVectorIndex

    return PgVectorIndex(settings.database_url, **options)


_CHUNK = 32
"""Passages of one call of a worker process."""
_MIN_CHARACTERS = 100_000
"""Shorter texts are analyzed in this process: a worker process takes a second to start."""

Submit = Callable[[dict[str, Any]], "Future[dict[str, Any]]"]
"""Has a worker process run `sleuth.tools.text.analysis.analyze`; the result is empty if the process fails."""


class PassageAnalyzer:
    """Analyzes passages, with the same results in this process and in worker processes."""

    def __init__(self) -> None:
        # The analyses of the batch that is indexed and of the next one, which is read in parallel.
        self._started: deque[dict[Passage, tuple[Future[dict[str, Any]], int]]] = deque(maxlen=2)

    def start(self, submit: Submit, passages: Sequence[Passage], detected: Sequence[str | None] = ()) -> None:
        """Have worker processes analyze passages that will be indexed next, if they are long.

        Args:
            submit: Starts the analysis in a worker process.
            passages: The passages.
            detected: The language of each passage if it is known, see `find_terms`; the detector of a worker process
                takes a second to load.
        """
        if sum(len(passage.text) for passage in passages) < _MIN_CHARACTERS:
            return
        started: dict[Passage, tuple[Future[dict[str, Any]], int]] = {}
        for start in range(0, len(passages), _CHUNK):
            chunk = passages[start : start + _CHUNK]
            rows = [(passage.document_id, passage.title, passage.text) for passage in chunk]
            call = submit({"rows": rows, "detected": detected[start : start + _CHUNK]})
            started |= {passage: (call, at) for at, passage in enumerate(chunk)}
        self._started.append(started)

    def terms(self, passages: Sequence[Passage]) -> list[KeywordTerms]:
        """Return what the keyword index stores of each passage."""
        results = self._results(passages)
        return find_terms(passages) if results is None else [KeywordTerms(*terms) for terms, _ in results]

    def names(self, passages: Sequence[Passage]) -> list[PassageNames]:
        """Return what the entity graph stores of each passage."""
        results = self._results(passages)
        if results is None:
            return find_names(passages)
        return [PassageNames(dict(aliases), mentions) for _, (aliases, mentions) in results]

    def _results(self, passages: Sequence[Passage]) -> list[Any] | None:
        """Wait for the results of worker processes; return None if one was not started, or failed."""
        calls = ChainMap(*self._started)
        try:
            return [calls[passage][0].result()["found"][calls[passage][1]] for passage in passages]
        except KeyError:
            return None
