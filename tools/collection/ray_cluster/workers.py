"""Reading of files and analysis of passages on a Ray cluster. The machines need no common file system.

All methods block, except those that return a future: call them in a thread.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, TypeVar

from sleuth.tools.collection.ray_cluster.connection import RETRIES, Connect, cluster_failed, connect, processors
from sleuth.tools.documents.file_list import Item
from sleuth.tools.documents.loading import FileReader, LoadedDocument, Loaders, read_bytes
from sleuth.tools.documents.resource_limits import Bounds, printable
from sleuth.tools.errors import DocumentError, StoreError
from sleuth.tools.text.analysis import analyze

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class FileTask:
    """A file to read on a worker: its path, the name in it if it is an archive, its time of modification, and how."""

    path: Path
    member: str
    modified: int
    loaders: tuple[tuple[str, str], ...]
    bounds: Bounds


class RayWorkers:
    """The workers of a cluster, one for each of its processors; the task of a killed worker is repeated."""

    def __init__(self, address: str, *, loaders: Loaders, bounds: Bounds, connect: Connect = connect) -> None:
        """Set the address, as in `connect`; the first file or passage connects."""
        self._address = address
        self._connect = connect
        self._loaders = tuple(loaders.items())
        self._bounds = bounds
        self._unreadable = FileReader(loaders=loaders, bounds=bounds)
        self._last: tuple[tuple[Path, int], Any] | None = None

    @cached_property
    def _ray(self) -> ModuleType:
        return self._connect(self._address)

    @cached_property
    def count(self) -> int:
        """Number of files that are read in parallel; raises UsageError if the cluster does not answer."""
        return processors(self._ray)

    def submit(self, item: Item) -> "Future[LoadedDocument]":
        """Start reading a file; the result raises what `FileReader.read` raises."""
        try:
            modified, data = self._data(item.path)
        except (DocumentError, OSError):
            return _done(lambda: self._unreadable.read(item.path, item.member))
        task = FileTask(
            path=item.path, member=item.member, modified=modified, loaders=self._loaders, bounds=self._bounds
        )
        return self._submit(_parse, self._task(read_file).remote(task, data))

    def submit_analysis(self, given: dict[str, Any]) -> "Future[dict[str, Any]]":
        """Start the analysis of passages."""
        return self._submit(dict, self._task(analyze).remote(given))

    def stop(self) -> None:
        """Forget the last file; the cluster ends its idle workers itself."""
        self._last = None

    def close(self) -> None:
        """Forget the last file; the process stays connected to the cluster."""
        self.stop()
        self._unreadable.close()

    def _data(self, path: Path) -> tuple[int, Any]:
        """Return the time of modification and the bytes of a file, which is sent once for all files of an archive."""
        key = path, path.stat().st_mtime_ns
        if self._last is None or self._last[0] != key:
            self._last = key, self._ray.put(read_bytes(path))
        return key[1], self._last[1]

    def _task(self, function: Callable[..., Any]) -> Any:  # noqa: ANN401 - Ray's, which is imported when it is needed
        return self._ray.remote(num_cpus=1, max_retries=RETRIES)(function)

    def _submit(self, parse: Callable[[Any], T], result: Any) -> "Future[T]":  # noqa: ANN401 - as above
        found: Future[T] = Future()
        result.future().add_done_callback(lambda done: self._finish(done, parse, found))
        return found

    def _finish(self, done: "Future[Any]", parse: Callable[[Any], T], found: "Future[T]") -> None:
        if not found.set_running_or_notify_cancel():
            return
        try:
            found.set_result(parse(done.result()))
        except (DocumentError, StoreError) as error:
            found.set_exception(error)
        except self._ray.exceptions.RayError as error:
            found.set_exception(cluster_failed(error))


def read_file(task: FileTask, data: bytes) -> dict[str, Any]:
    """Read a file on a worker from its bytes; return the document, or the reason why it cannot be read."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / task.path.name
        copy.write_bytes(data)
        os.utime(copy, ns=(task.modified, task.modified))
        try:
            return asdict(_reader(task.loaders, task.bounds).read(copy, task.member))
        except DocumentError as error:
            return {"error": str(error).replace(printable(copy), printable(task.path))}


@lru_cache(maxsize=1)
def _reader(loaders: tuple[tuple[str, str], ...], bounds: Bounds) -> FileReader:
    """Return the reader of a worker, which keeps its parsing process between tasks."""
    return FileReader(loaders=dict(loaders), bounds=bounds)


def _parse(value: dict[str, Any]) -> LoadedDocument:
    if "error" in value:
        raise DocumentError(value["error"])
    return LoadedDocument.from_json(value)


def _done(read: Callable[[], T]) -> "Future[T]":
    found: Future[T] = Future()
    try:
        found.set_result(read())
    except (DocumentError, StoreError) as error:
        found.set_exception(error)
    return found
