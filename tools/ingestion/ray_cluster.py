"""Work on a Ray cluster: reading of files, analysis and embedding of passages. Needs the extra `ray`.

The machines need no common file system. All functions and methods block, except those that return a future.
"""

import logging
import os
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, cast
from urllib.parse import urlsplit

import numpy as np

from sleuth.tools.documents.file_list import Item
from sleuth.tools.documents.loading import FileReader, LoadedDocument, Loaders
from sleuth.tools.documents.resource_limits import Bounds, printable, read_bytes
from sleuth.tools.errors import DISTRIBUTION, DocumentError, StoreError, UsageError, extra
from sleuth.tools.search.vectors import Embedder, Vectors
from sleuth.tools.search.vectors.embedder import LocalEmbedder
from sleuth.tools.text.analysis import analyze
from sleuth.tools.text.normalization import shorten

_log = logging.getLogger(__name__)

RETRIES = 20
"""Repetitions of a task whose worker was killed."""
_SECONDS = 10.0
"""Time to reach the head node; Ray itself waits for minutes."""
_MIN_PASSAGES = 16
"""Smallest number of passages of a task."""


def connect(address: str) -> ModuleType:
    """Return Ray, connected to a cluster; the process stays connected until it ends.

    Args:
        address: `HOST:PORT` of the head node, for a machine of the cluster; `ray://HOST:PORT` of its client server for
            another one.

    Raises:
        MissingExtra: Ray is not installed.
        UsageError: no cluster answers.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # otherwise Ray sends usage statistics
    try:
        with extra("ray", "A Ray cluster"):
            if find_spec("ray") is None:
                raise ModuleNotFoundError(name="ray")
            own_address = _own_address(address)
            if own_address == "127.0.0.1":
                os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # the cluster is this machine
            import ray
            from ray._private import worker

            if not ray.is_initialized():
                # Ray reports workers that end, whose tasks it repeats, on standard output, which is for results.
                setattr(worker, "print_to_stdstream", _log_message)  # noqa: B010 - a function of Ray's
                options: dict[str, Any] = {} if address.startswith("ray://") else {"_node_ip_address": own_address}
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (OSError, RuntimeError, ValueError) as error:
        reason = shorten(str(error))
        raise UsageError(
            f"No Ray cluster answers at {address}: {reason}. Start one with `ray start --head --disable-usage-stats`, "
            "or check --ray."
        ) from error
    return cast("ModuleType", ray)


def _log_message(data: Mapping[str, Any], **_options: bool) -> None:
    _log.info("Ray: %s", " ".join(map(str, data["lines"])))


def _own_address(address: str) -> str:
    """Return the address from which this machine reaches the head node; Ray itself looks up one for a public server."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if not (parts.hostname and parts.port):
        raise ValueError("an address is HOST:PORT or ray://HOST:PORT")
    with socket.create_connection((parts.hostname, parts.port), timeout=_SECONDS) as connection:
        return str(connection.getsockname()[0])


def processors(ray: ModuleType) -> int:
    """Return the number of processors of the cluster."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def cluster_failed(error: BaseException) -> StoreError:
    """Return the error for a task that failed for another reason than a killed worker."""
    cause = getattr(error, "cause", None) or error
    reason = " ".join(str(cause).split())[-300:]
    return StoreError(
        f"The Ray cluster failed: {reason}. Check that all its machines have the same versions of Python, Ray and "
        f"{DISTRIBUTION}. Rerun the command to resume."
    )


class RayWorkers:
    """The workers of a cluster, one for each of its processors; the task of a killed worker is repeated."""

    def __init__(self, address: str, *, loaders: Loaders, bounds: Bounds) -> None:
        """Set the address, as in `connect`; the first file or passage connects."""
        self._address = address
        self._options = tuple(loaders.items()), bounds
        self._last: tuple[tuple[Path, int], Any] | None = None

    @cached_property
    def _ray(self) -> ModuleType:
        return connect(self._address)

    @cached_property
    def count(self) -> int:
        """Number of files that are read in parallel; raises UsageError if the cluster does not answer."""
        return processors(self._ray)

    def submit(self, item: Item) -> "Future[LoadedDocument]":
        """Start reading a file; the result raises what `FileReader.read` raises."""
        try:
            key = item.path, item.path.stat().st_mtime_ns if item.path.exists() else 0
            if self._last is None or self._last[0] != key:  # sent once for all files of an archive
                self._last = key, self._ray.put(read_bytes(item.path))
        except (DocumentError, OSError) as error:
            failed: Future[LoadedDocument] = Future()
            failed.set_exception(DocumentError(f"{printable(item.path, item.member)}: {error}"))
            return failed
        return self._start(read_file, *key, item.member, self._options, self._last[1])

    def submit_analysis(self, request: dict[str, Any]) -> "Future[dict[str, Any]]":
        """Start the analysis of passages."""
        return self._start(analyze, request)

    def close(self) -> None:
        """Forget the last file; the cluster ends its idle workers itself."""
        self._last = None

    def _start(self, function: Callable[..., Any], *arguments: object) -> "Future[Any]":
        """Start a task; return the future of its result, or of the error that it returns."""
        task = self._ray.remote(num_cpus=1, max_retries=RETRIES)(function).remote(*arguments)
        future: Future[Any] = Future()

        def finish(done: "Future[Any]") -> None:
            if future.set_running_or_notify_cancel():
                try:
                    result = done.result()
                except self._ray.exceptions.RayError as error:
                    result = cluster_failed(error)
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

        task.future().add_done_callback(finish)
        return future


def read_file(path: Path, modified: int, member: str, options: Any, data: bytes) -> LoadedDocument | DocumentError:  # noqa: ANN401
    """Read a file on a worker from its bytes; return the document, or the error that names the file."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(data)
        os.utime(copy, ns=(modified, modified))
        try:
            return _reader(*options).read(copy, member)
        except DocumentError as error:
            return DocumentError(str(error).replace(printable(copy), printable(path)))


@lru_cache(maxsize=1)
def _reader(loaders: tuple[tuple[str, str], ...], bounds: Bounds) -> FileReader:
    """Return the reader of a worker, which keeps its parsing process between tasks."""
    return FileReader(loaders=dict(loaders), bounds=bounds)


class RayEmbedder:
    """Embeds passages on the workers of a cluster, and questions in this process."""

    def __init__(self, address: str, embedder: Embedder) -> None:
        """Set the cluster, to which the first passages connect.

        Args:
            address: as in `connect`.
            embedder: the embedder of questions; the workers load the model of the same name.
        """
        self.name = embedder.name
        self._embedder = embedder
        self._address = address

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        return self._embedder.embed_query(text)

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Return one row per text.

        Raises:
            UsageError: Ray is not installed, or no cluster answers.
            StoreError: a worker cannot load the model, or the cluster fails.
        """
        ray = connect(self._address)
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(embed)
        size = max(_MIN_PASSAGES, -(-len(texts) // processors(ray)))
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        try:
            vectors: list[Vectors] = ray.get([task.remote(self.name, part) for part in parts])
        except ray.exceptions.RayError as error:
            raise cluster_failed(error) from error
        return np.concatenate(vectors)


def embed(name: str, texts: list[str]) -> Vectors:
    """Embed passages on a worker."""
    return _worker_embedder(name).embed_passages(texts)


@lru_cache(maxsize=1)
def _worker_embedder(name: str) -> Embedder:
    """Return the embedder of a worker, which keeps the model between tasks."""
    return LocalEmbedder(name)
