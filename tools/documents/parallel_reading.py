"""Reading of the files of a list in order, with several worker processes that read ahead.

All methods block: call them in a thread.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sleuth.tools.documents.corpus import is_corpus
from sleuth.tools.documents.file_list import Item, read_item
from sleuth.tools.documents.loading import FileReader, LoadedDocument
from sleuth.tools.errors import StoreError

_AHEAD = 2
"""Files that are read or wait to be taken, for each worker."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A file of the list, where its item begins, and its document to come; a corpus has none, it is read by lines."""

    offset: int
    item: Item
    document: "Future[LoadedDocument] | None"

    def result(self) -> LoadedDocument:
        """Wait for the document; raise what `FileReader.read` raises."""
        assert self.document is not None
        try:
            return self.document.result()
        except CancelledError as error:
            raise StoreError("The library is closed.") from error


class ReaderPool:
    """A pool of readers, each with a worker process on this machine."""

    def __init__(self, make: Callable[[], FileReader], workers: int) -> None:
        self.workers = workers
        self._readers = [make() for _ in range(workers)]
        self._free = deque(self._readers)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="read-files")

    def submit(self, item: Item) -> "Future[LoadedDocument]":
        """Start reading a file; the result raises what `FileReader.read` raises."""
        return self._threads.submit(self._read, item)

    def stop(self) -> None:
        """End the worker processes that read nothing; the next files start them again."""
        for reader in [self._free.popleft() for _ in range(len(self._free))]:
            reader.stop()
            self._free.append(reader)

    def close(self) -> None:
        """End the worker processes for good, also while files are read."""
        for reader in self._readers:
            reader.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _read(self, item: Item) -> LoadedDocument:
        reader = self._free.popleft()  # there are as many as threads
        try:
            return reader.read(item.path, item.member)
        finally:
            self._free.append(reader)


class ParallelReader:
    """Reads the next files of a list while the caller works on the present one."""

    def __init__(self, pool: ReaderPool) -> None:
        self._pool = pool
        self._pending: deque[Reading] = deque()
        self._list: tuple[Path, int, int] | None = None

    def next(self, worklist: Path, offset: int) -> Reading | None:
        """Return the file at an offset of the list, None at its end, and have the files after it read.

        The same offset returns the same file again.
        """
        info = worklist.stat()
        identity = worklist, info.st_ino, info.st_mtime_ns
        if self._list != identity:
            self._drop(len(self._pending))
            self._list = identity
        while self._pending and self._pending[0].offset != offset:
            self._drop(1)
        place = self._pending[-1].item.next_offset if self._pending else offset
        while len(self._pending) < _AHEAD * self._pool.workers:
            if (item := read_item(worklist, place)) is None:
                break
            document = None if is_corpus(item.path) else self._pool.submit(item)
            self._pending.append(Reading(place, item, document))
            place = item.next_offset
        return self._pending[0] if self._pending else None

    def stop(self) -> None:
        """End the worker processes; the next file starts them again."""
        self._drop(len(self._pending))
        self._pool.stop()

    def close(self) -> None:
        """End the worker processes for good, also while files are read."""
        self._pool.close()

    def _drop(self, count: int) -> None:
        for _ in range(count):
            if (document := self._pending.popleft().document) is not None:
                document.cancel()


def default_workers() -> int:
    """Return half the number of processors that this process may use, from 1 to 8."""
    return max(1, min(8, len(os.sched_getaffinity(0)) // 2 if hasattr(os, "sched_getaffinity") else 1))
