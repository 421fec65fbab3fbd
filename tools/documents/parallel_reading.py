"""Reading of files in order, with several worker processes that read ahead.

All methods block, except those that return a future: call them in a thread.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol, TypeVar

from sleuth.tools.documents.corpus import is_corpus
from sleuth.tools.documents.file_list import Item
from sleuth.tools.documents.loading import NO_LOADERS, FileReader, LoadedDocument, Loaders
from sleuth.tools.documents.resource_limits import BOUNDS, Bounds
from sleuth.tools.documents.worker import Worker, WorkerError
from sleuth.tools.errors import DocumentError, StoreError

_AHEAD = 2
"""Files for each worker that are being read, or are read and not yet returned."""
_ANALYSIS = "sleuth.tools.text.analysis.analyze"
_ANALYSIS_BOUNDS = Bounds(megabytes=1 << 20)
"""No limit of memory: the texts are those of files that were read within limits."""

T = TypeVar("T")


class _Pool:
    """Processes that each serve one thread at a time."""

    def __init__(self, processes: Sequence[FileReader | Worker], name: str) -> None:
        self._processes = processes
        self._free = deque(processes)
        self._threads = ThreadPoolExecutor(len(processes), thread_name_prefix=name)

    def submit(self, call: Callable[[Any], T]) -> "Future[T]":
        try:
            return self._threads.submit(self._run, call)
        except RuntimeError as error:
            raise StoreError("The collection is closed.") from error

    def close(self) -> None:
        for process in self._processes:
            process.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, call: Callable[[Any], T]) -> T:
        process = self._free.popleft()  # there are as many as threads
        try:
            return call(process)
        finally:
            self._free.append(process)


class Workers(Protocol):
    """Worker processes that read files and analyze passages, on this machine or others."""

    @property
    def count(self) -> int:
        """Return the number of files that are read in parallel."""

    def submit(self, item: Item) -> "Future[LoadedDocument]":
        """Start reading a file; the result raises what `FileReader.read` raises."""

    def submit_analysis(self, request: dict[str, Any]) -> "Future[dict[str, Any]]":
        """Start the analysis of passages; the result is empty if the process fails."""

    def close(self) -> None:
        """End the processes for good, also while they work."""


class LocalWorkers:
    """Worker processes on this machine: as many that read files as that analyze passages."""

    def __init__(self, count: int, *, loaders: Loaders = NO_LOADERS, bounds: Bounds = BOUNDS) -> None:
        self.count = count
        self._readers = _Pool([FileReader(loaders=loaders, bounds=bounds) for _ in range(count)], "read-files")
        self._analyzers = _Pool([Worker(_ANALYSIS, _ANALYSIS_BOUNDS) for _ in range(count)], "analyze-passages")

    def submit(self, item: Item) -> "Future[LoadedDocument]":
        """Start reading a file; the result raises what `FileReader.read` raises."""
        return self._readers.submit(lambda reader: reader.read(item.path, item.member))

    def submit_analysis(self, request: dict[str, Any]) -> "Future[dict[str, Any]]":
        """Start the analysis of passages; the result is empty if the process fails."""
        return self._analyzers.submit(lambda worker: _analysis(worker, request))

    def close(self) -> None:
        """End the processes for good, also while they work."""
        self._readers.close()
        self._analyzers.close()


def _analysis(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return worker.call(request, seconds=_ANALYSIS_BOUNDS.patience)
    except WorkerError:
        return {}


def read_ahead(
    items: Iterable[Item], submit: Callable[[Item], "Future[LoadedDocument]"], workers: int
) -> Iterator[tuple[Item, LoadedDocument | DocumentError | None]]:
    """Yield files in order with their documents, while as many workers read the next ones.

    A file that cannot be read has an error for a document. A corpus has None: it is read by lines.

    Raises:
        StoreError: the workers are closed.
    """
    pending: deque[tuple[Item, Future[LoadedDocument] | None]] = deque()
    waiting = iter(items)
    try:
        while True:
            for item in islice(waiting, _AHEAD * workers - len(pending)):
                pending.append((item, None if is_corpus(item.path) else submit(item)))
            if not pending:
                return
            item, document = pending.popleft()
            yield item, _result(document) if document else None
    finally:
        for _, document in pending:
            if document is not None:
                document.cancel()


def _result(document: "Future[LoadedDocument]") -> LoadedDocument | DocumentError:
    try:
        return document.result()
    except DocumentError as error:
        return error
    except CancelledError as error:
        raise StoreError("The collection is closed.") from error


def default_workers() -> int:
    """Return half the number of processors that this process may use, from 1 to 8."""
    return max(1, min(8, len(os.sched_getaffinity(0)) // 2 if hasattr(os, "sched_getaffinity") else 1))
