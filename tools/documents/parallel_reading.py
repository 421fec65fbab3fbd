"""Reading of the files of a list in order, with several worker processes that read ahead.

All methods block, except those that return a future: call them in a thread.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from sleuth.tools.documents.corpus import is_corpus
from sleuth.tools.documents.file_list import Item, read_item
from sleuth.tools.documents.loading import FileReader, LoadedDocument
from sleuth.tools.documents.resource_limits import Bounds
from sleuth.tools.documents.worker import Worker
from sleuth.tools.errors import StoreError

_AHEAD = 2
"""Files that are read or wait to be taken, for each worker."""
_ANALYSIS_BOUNDS = Bounds(megabytes=1 << 20)
"""No limit of memory: the texts are those of files that were read within limits."""

T = TypeVar("T")


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
            raise StoreError("The collection is closed.") from error


class Workers(Protocol):
    """Worker processes of an ingest."""

    @property
    def count(self) -> int:
        """Number of files that are read in parallel."""
        ...

    def submit(self, item: Item) -> "Future[LoadedDocument]":
        """Start reading a file; the result raises what `FileReader.read` raises."""
        ...

    def submit_analysis(self, given: dict[str, Any]) -> "Future[dict[str, Any]]":
        """Start the analysis of passages; the result raises WorkerError if the process fails."""
        ...

    def stop(self) -> None:
        """End the processes that do nothing; the next call starts them again."""
        ...

    def close(self) -> None:
        """End the processes for good, also while they work."""
        ...


P = TypeVar("P", FileReader, Worker)


class _Threads(Generic[P]):
    """One thread for each of some processes."""

    def __init__(self, processes: list[P], name: str) -> None:
        self._processes: list[P] = processes
        self._free: deque[P] = deque(processes)
        self._calls: deque[tuple[Future[Any], Callable[[P], Any]]] = deque()
        self._threads = ThreadPoolExecutor(len(processes), thread_name_prefix=name)

    def submit(self, call: Callable[[P], T], *, first: bool = False) -> "Future[T]":
        """Start a call, before all that wait if it is to be the first."""
        future: Future[T] = Future()
        add = self._calls.appendleft if first else self._calls.append
        add((future, call))
        self._threads.submit(self._run)
        return future

    def stop(self) -> None:
        for process in [self._free.popleft() for _ in range(len(self._free))]:
            process.stop()
            self._free.append(process)

    def close(self) -> None:
        for process in self._processes:
            process.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for future, _ in self._calls:
            future.cancel()

    def _run(self) -> None:
        future, call = self._calls.popleft()
        if not future.set_running_or_notify_cancel():
            return
        try:
            found = self._result(call)
        except BaseException as error:
            future.set_exception(error)
            raise
        future.set_result(found)

    def _result(self, call: Callable[[P], T]) -> T:
        process = self._free.popleft()  # there are as many as threads
        try:
            return call(process)
        finally:
            self._free.append(process)


class LocalWorkers:
    """Worker processes on this machine: as many that read files as that analyze passages."""

    def __init__(self, make_reader: Callable[[], FileReader], count: int) -> None:
        self.count = count
        self._readers = _Threads([make_reader() for _ in range(count)], "read-files")
        self._analyzers = _Threads([Worker("analysis", _ANALYSIS_BOUNDS) for _ in range(count)], "analyze-passages")

    def submit(self, item: Item) -> "Future[LoadedDocument]":
        """Start reading a file; the result raises what `FileReader.read` raises."""
        return self._readers.submit(lambda reader: reader.read(item.path, item.member))

    def submit_analysis(self, given: dict[str, Any]) -> "Future[dict[str, Any]]":
        """Start the analysis of passages; the result raises WorkerError if the process fails."""
        # The next batch is stored, and its analysis started, when the languages of its documents are known.
        is_urgent = given["kind"] == "languages"
        return self._analyzers.submit(
            lambda worker: worker.call(given, seconds=_ANALYSIS_BOUNDS.patience), first=is_urgent
        )

    def stop(self) -> None:
        """End the processes that do nothing; the next call starts them again."""
        self._readers.stop()
        self._analyzers.stop()

    def close(self) -> None:
        """End the processes for good, also while they work."""
        self._readers.close()
        self._analyzers.close()


class ParallelReader:
    """Reads the next files of a list while the caller works on the present one."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
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
        while len(self._pending) < _AHEAD * self._workers.count:
            if (item := read_item(worklist, place)) is None:
                break
            document = None if is_corpus(item.path) else self._workers.submit(item)
            self._pending.append(Reading(place, item, document))
            place = item.next_offset
        return self._pending[0] if self._pending else None

    def stop(self) -> None:
        """Forget the files that were read ahead, and end the worker processes; the next file starts them again."""
        self._drop(len(self._pending))
        self._workers.stop()

    def close(self) -> None:
        """End the worker processes for good, also while files are read."""
        self._workers.close()

    def _drop(self, count: int) -> None:
        for _ in range(count):
            if (document := self._pending.popleft().document) is not None:
                document.cancel()


def default_workers() -> int:
    """Return half the number of processors that this process may use, from 1 to 8."""
    return max(1, min(8, len(os.sched_getaffinity(0)) // 2 if hasattr(os, "sched_getaffinity") else 1))
