"""Reading of files on a Ray cluster, whose workers have the same files at the same paths.

All methods block: call them in a thread.
"""

from concurrent.futures import Future
from dataclasses import asdict
from functools import cached_property, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from sleuth.tools.cluster.connection import RETRIES, connect
from sleuth.tools.documents import Bounds, FileReader, Item, LoadedDocument, Loaders
from sleuth.tools.errors import DocumentError, StoreError


@lru_cache(maxsize=1)
def _reader(loaders: tuple[tuple[str, str], ...], bounds: Bounds) -> FileReader:
    """Return the reader of a worker, which keeps its process between tasks."""
    return FileReader(loaders=dict(loaders), bounds=bounds)


def read_file(path: str, member: str, loaders: tuple[tuple[str, str], ...], bounds: Bounds) -> dict[str, Any]:
    """Read a file on a worker; return the document, or the reason why it cannot be read."""
    if not Path(path).exists():
        return {"missing": path}
    try:
        return asdict(_reader(loaders, bounds).read(Path(path), member))
    except DocumentError as error:
        return {"error": str(error)}


class RayReaders:
    """A pool of readers with one worker for each processor of the cluster; killed workers are replaced."""

    def __init__(self, address: str, *, loaders: Loaders, bounds: Bounds) -> None:
        """Set the address, see `connect`; the first file connects."""
        self._address = address
        self._given = tuple(loaders.items()), bounds

    @cached_property
    def _ray(self) -> ModuleType:
        return connect(self._address)

    @cached_property
    def workers(self) -> int:
        """The number of processors of the cluster; raise UsageError if it does not answer."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, item: Item) -> "Future[LoadedDocument]":
        """Start reading a file; the result raises what `FileReader.read` raises."""
        found: Future[LoadedDocument] = Future()
        task = self._ray.remote(num_cpus=1, max_retries=RETRIES)(read_file)
        remote: Future[dict[str, Any]] = task.remote(str(item.path), item.member, *self._given).future()
        remote.add_done_callback(lambda done: self._finish(item, done, found))
        return found

    def stop(self) -> None:
        """Do nothing: the cluster ends its idle workers."""

    def close(self) -> None:
        """Do nothing: the process stays connected to the cluster."""

    def _finish(self, item: Item, done: "Future[dict[str, Any]]", found: "Future[LoadedDocument]") -> None:
        if not found.set_running_or_notify_cancel():
            return
        try:
            value = done.result()
            if "missing" in value:
                raise StoreError(
                    f"A worker of the Ray cluster cannot see {item.source}. Put the files on a file system that all "
                    "machines have at the same path."
                )
            if "error" in value:
                raise DocumentError(value["error"])
            found.set_result(LoadedDocument.from_json(value))
        except (DocumentError, StoreError) as error:
            found.set_exception(error)
        except self._ray.exceptions.RayError as error:
            found.set_exception(StoreError(f"The Ray cluster failed: {error}. Run the command again to resume."))
