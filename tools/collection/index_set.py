"""The indexes of a collection, opened when first needed and updated from the catalogue before each use.

All methods block: call them in a thread.
"""

import logging
import os
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from filelock import FileLock, Timeout

from sleuth.tools.collection.index_sync import catch_up, delete_removed, repair
from sleuth.tools.collection.passage_analysis import PassageAnalyzer
from sleuth.tools.collection.snapshots import Snapshots
from sleuth.tools.errors import EmbedderChanged, StoreBusy, StoreError
from sleuth.tools.search import Index, IndexName, KeywordIndex
from sleuth.tools.search.entity_graph import GraphIndex
from sleuth.tools.search.vectors import (
    MAX_EXACT,
    Embedder,
    NoEmbedder,
    VectorIndex,
    no_embedder,
    open_vectors,
    place_of,
)
from sleuth.tools.settings import Settings
from sleuth.tools.storage import Catalogue
from sleuth.tools.types import EmbedderRecord

_log = logging.getLogger(__name__)

ALL: tuple[IndexName, ...] = ("keyword", "graph", "dense")

OnIndexed = Callable[[IndexName, int], None]

# Seconds that a search waits for another process that updates the indexes.
_INDEXING_SECONDS = 60.0

INDEXING_LOCK = Path("locks", "indexing.lock")
"""File in SLEUTH_HOME that is locked while indexes are written."""

_IMPORTED = uuid4().hex

MIN_PASSAGES = 1_000
"""Passages from which on an index is stored as a snapshot; fewer are indexed in a second."""

# A snapshot is replaced when this share of its passages has been indexed since: during an ingest, and at its end.
_GROWN, _GROWN_AT_END = 0.5, 0.1
# An index that lacks this share of the changes in a snapshot is replaced by it.
_BEHIND = 0.1


class IndexSet:
    """Keyword index, entity graph and vectors; `notes` has a line for each repair.

    A draft is a second set of the same collection, which is built while the first one is searched.
    """

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        embedder: Embedder,
        analyzer: PassageAnalyzer | None = None,
        *,
        is_draft: bool = False,
    ) -> None:
        self.notes: list[str] = []
        self._analyzer = analyzer or PassageAnalyzer()
        self._settings = settings
        self._catalogue = catalogue
        self._embedder = embedder
        self._suffix = "-next" if is_draft else ""
        self._draft: IndexSet | None = None
        self._open: dict[IndexName, Index] = {}
        self._known: dict[IndexName, int] = {}
        self._files: dict[IndexName, tuple[int, int] | None] = {}
        self._snapshots = Snapshots(catalogue.engine, catalogue.place)
        self._unsaved: Counter[IndexName] = Counter()
        self._saved: dict[IndexName, int] = {}
        self._turn = threading.Lock()
        self._is_closing = threading.Event()
        self._folder = settings.home / "locks"

    @property
    def names(self) -> tuple[IndexName, ...]:
        """Return the indexes in use, the slowest last; without an embedder there are no vectors."""
        return ALL[:-1] if isinstance(self._embedder, NoEmbedder) else ALL

    @property
    def name_vectors(self) -> Path:
        """Return the file of the vectors of names in triples."""
        return self._settings.home / "names" / f"{self._file_name()}.npz"

    def close(self) -> None:
        """Close the open indexes; indexing in another thread stops after its present batch."""
        self._is_closing.set()
        if self._draft is not None:
            self._draft.close()
        with self._turn:
            for index in self._open.values():
                index.close()
            self._open.clear()

    def ready(self, name: IndexName, on_indexed: OnIndexed, head: int | None = None) -> Index:
        """Return an index that is up to date with the catalogue, or with `head`, its last change as read before.

        Raises:
            EmbedderChanged: the vectors are those of another embedder.
            UsageError: vectors are requested without an embedder.
        """
        if name not in self.names:
            raise no_embedder()
        with self._turn:
            if self._is_closing.is_set():
                raise StoreError("The collection is closed.")
            self._close_if_deleted(name)
            if self._known.get(name) != (self._catalogue.head() if head is None else head):
                with self._indexing():
                    self._follow(name, on_indexed)
            return self._open[name]

    def reopen(self, name: IndexName) -> None:
        """Have an index that another process has rebuilt or deleted opened again and updated at its next use."""
        with self._turn:
            self._known.pop(name, None)
            if name in self._open:
                self._open[name].refresh(anew=True)

    def build_draft(self, on_indexed: OnIndexed) -> None:
        """Build new indexes next to these, which may be searched meanwhile; a killed build is resumed."""
        self._draft = IndexSet(self._settings, self._catalogue, self._embedder, self._analyzer, is_draft=True)
        self._analyzer.is_parallel = True
        for name in self.names:
            if self._is_closing.is_set():
                raise StoreError("The collection is closed.")
            self._draft.ready(name, on_indexed)
        self._analyzer.stop()

    def use_draft(self) -> None:
        """Replace these indexes by the ones that were built; the caller holds the exclusive lock on SLEUTH_HOME."""
        assert self._draft is not None
        with self._turn, self._indexing():
            for name in self.names:
                self._replace(self._opened(name), self._draft._opened(name))
                self._catalogue.move_index_time(name + self._draft._suffix, name)
            self._open.pop("keyword")  # its folder was moved
            self._known.clear()
            for name in self.names:
                self._snapshots.remove(name)
                self._saved[name], self._unsaved[name] = 0, MIN_PASSAGES
        self._draft.close()
        Path(self._draft._place("graph")).unlink(missing_ok=True)

    def reset_if_ahead(self) -> None:
        """Clear indexes that are ahead of the catalogue, which happens after restoring it from an older backup.

        Call this before a change is written: its sequence number may already be used by an index.
        """
        names = self.names if self._catalogue.embedder() is None else ALL
        with self._turn, self._indexing():
            for name in names:
                if self._is_ahead(index := self._opened(name)):
                    index.clear()

    def finish(self) -> None:
        """Do the maintenance at the end of a change, and store snapshots of indexes that have changed much."""
        with self._turn, self._indexing():
            for name in self.names:
                index = self._opened(name)
                if isinstance(index, VectorIndex):
                    began = time.monotonic()
                    if index.tidy() and name in self._catalogue.index_times():  # an index of an older release has none
                        self._catalogue.add_index_time(name, time.monotonic() - began)
                self._save(name, index, _GROWN_AT_END)

    def delete_removed(self) -> None:
        """Delete the vectors of deleted passages also if they are not in use now, since there is no embedder."""
        if "dense" not in self.names and self._catalogue.embedder() is not None:
            with self._turn, self._indexing():
                delete_removed(self._catalogue, self._opened("dense"))

    def _follow(self, name: IndexName, on_indexed: OnIndexed) -> None:
        index = self._opened(name)
        if isinstance(index, VectorIndex):
            self._prepare(index)
        began, indexed = time.monotonic(), 0
        index = self._fetched(name, index)

        def count(passages: int) -> None:
            nonlocal indexed
            indexed += passages
            self._unsaved[name] += passages
            on_indexed(name, passages)
            if self._is_closing.is_set():
                raise StoreError("The collection was closed during indexing; the next start resumes it.")

        catch_up(self._catalogue, index, on_indexed=count)
        if name not in self._known and (note := repair(self._catalogue, index, on_indexed=count)):
            self.notes.append(note)
        if isinstance(index, VectorIndex):
            self._record(index)
            if indexed > MAX_EXACT:  # more than a batch of an ingest
                index.tidy()
        if indexed:
            self._catalogue.add_index_time(name + self._suffix, time.monotonic() - began)
        self._known[name] = index.applied()
        self._save(name, index, _GROWN)

    def _fetched(self, name: IndexName, index: Index) -> Index:
        """Return the index, replaced by its snapshot if it lacks many of the changes in it."""
        if name in self._known or self._suffix or isinstance(index, VectorIndex):
            return index
        try:
            found = self._snapshots.find(name, index)
            if found is None or not self._snapshots.is_far_behind(index.applied(), found, _BEHIND):
                return index
            with TemporaryDirectory(dir=self._settings.home, prefix="snapshot-") as folder:
                place = self._snapshots.fetch(found, Path(folder))
                new = KeywordIndex(place) if name == "keyword" else GraphIndex(place)
                if new.applied() != found.seq:
                    raise StoreError(f"it ends with the change {new.applied()}, not {found.seq}.")
                self._replace(index, new)
                new.close()
        except (StoreError, OSError, tarfile.TarError) as error:
            _log.warning("The snapshot of the %s cannot be used, the index is built: %s", index.name, error)
            return self._opened(name)
        self._saved[name] = found.passages
        if name == "keyword":  # its folder was moved
            self._open.pop(name)
        return self._opened(name)

    def _save(self, name: IndexName, index: Index, share: float) -> None:
        """Store a snapshot if `share` of the passages of the last one was indexed since; a failure is logged."""
        if not self._snapshots.is_available or self._suffix or isinstance(index, VectorIndex):
            return
        if self._unsaved[name] < max(MIN_PASSAGES, share * self._saved.get(name, 0)):
            return
        try:
            found = self._snapshots.find(name, index)
            self._saved[name] = found.passages if found else 0
            if index.count() < MIN_PASSAGES or self._unsaved[name] < share * self._saved[name]:
                return
            if (found and found.seq >= index.applied()) or self._snapshots.put(name, index, self._settings.home):
                self._unsaved[name], self._saved[name] = 0, index.count()
        except (StoreError, OSError) as error:
            _log.warning("The %s cannot be stored as a snapshot: %s", index.name, error)

    def _replace(self, index: Index, new: Index) -> None:
        match index, new:
            case VectorIndex(), VectorIndex():
                index.replace_by(new)
                self._record(index)
            case KeywordIndex(), KeywordIndex():
                index.replace_by(new)
            case GraphIndex(), GraphIndex():
                index.replace_by(new)

    def _is_ahead(self, index: Index) -> bool:
        """Return whether an index has later changes than the catalogue."""
        unknown = isinstance(index, VectorIndex) and self._catalogue.embedder() is None
        return index.reached() > (0 if unknown else self._catalogue.head())

    def _opened(self, name: IndexName) -> Index:
        """Return an index that includes the writes of other processes.

        Each process signs before it writes, so that it need not reload its own files between batches.
        """
        self._close_if_deleted(name)
        is_ours = self._sign(name)
        if name not in self._open:
            self._open[name] = self._make(name)
            self._files[name] = self._file(name)
        self._open[name].refresh(anew=not is_ours)
        return self._open[name]

    def _close_if_deleted(self, name: IndexName) -> None:
        """Close an index whose files were deleted under it, so that its next use builds it again."""
        if name in self._open and self._file(name) != self._files[name]:
            index = self._open.pop(name)
            self._known.pop(name, None)
            with suppress(StoreError):
                index.refresh(anew=True)  # Chroma's files are shared by all collections of this process
            with suppress(StoreError):
                index.close()

    def _file(self, name: IndexName) -> tuple[int, int] | None:
        """Return the identity of the file or folder of an index; None if it does not exist or is on a server."""
        place = self._place(name)
        if isinstance(place, str):
            return None
        try:
            found = (place / "chroma.sqlite3" if name == "dense" else place).stat()
            if name == "keyword":  # its files are replaced, not the folder
                (place / "meta.json").stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _sign(self, name: IndexName) -> bool:
        """Make this process the last writer of an index; return whether it was already."""
        file = self._folder / f"last-writer-{name}{self._suffix}"
        process = f"{_IMPORTED}-{os.getpid()}"  # a fork has another id
        try:
            if file.exists() and file.read_text(encoding="ascii") == process:
                return True
            file.write_text(process, encoding="ascii")
        except OSError as error:
            raise self._unwritable(error) from error
        return False

    def _file_name(self) -> str:
        collection = self._settings.collection
        # The hash distinguishes names that some file systems treat as equal, and makes ".." harmless.
        mark = sha256(f"{self._settings.owner}\0{collection}".encode()).hexdigest()[:12]
        return f"{collection}-{mark}{self._suffix}"

    def _place(self, name: IndexName) -> Path | str:
        match name:
            case "keyword":
                return self._settings.home / "keywords" / self._file_name()
            case "graph":
                return self._settings.home / "mentions" / f"{self._file_name()}.db"
            case "dense":
                return place_of(self._settings)

    def _make(self, name: IndexName) -> Index:
        place = self._place(name)
        if name != "dense" and isinstance(place, Path):
            if name == "keyword":
                return KeywordIndex(place, self._analyzer.terms)
            return GraphIndex(place, self._analyzer.names)
        record = None if "dense" in self.names else self._catalogue.embedder()
        embedder = NoEmbedder(record.name) if record else self._embedder
        return open_vectors(self._settings, embedder, suffix=self._suffix)

    def _prepare(self, vectors: VectorIndex) -> None:
        """Record the embedder of the vectors, and clear them if they are ahead of the catalogue.

        Raise EmbedderChanged for vectors of another embedder; those of a draft are deleted instead.
        """
        try:
            vectors.check_embedder()
        except EmbedderChanged:
            if not self._suffix:
                raise
            vectors.clear()
        if self._is_ahead(vectors):
            vectors.clear()
        self._record(vectors)

    def _record(self, vectors: VectorIndex) -> None:
        """Store the embedder of the vectors, also if documents were first ingested without one; not that of a draft."""
        if self._suffix:
            return
        record = EmbedderRecord(name=self._embedder.name, dimension=vectors.dimension(), version=vectors.version())
        if self._catalogue.embedder() != record:
            self._catalogue.set_embedder(record)

    @contextmanager
    def _indexing(self) -> Iterator[None]:
        """Exclude other processes: two that only search may both have to update an index."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = self._settings.home / INDEXING_LOCK.with_stem(INDEXING_LOCK.stem + self._suffix)
            turn = FileLock(lock).acquire(timeout=_INDEXING_SECONDS)
        except Timeout:  # a kind of OSError
            raise StoreBusy("Another process is updating the indexes. Try again later.") from None
        except OSError as error:
            raise self._unwritable(error) from error
        with turn:
            yield

    def _unwritable(self, error: OSError) -> StoreError:
        return StoreError(f"SLEUTH_HOME ({self._settings.home}) cannot be written: {error}. Free some space.")
