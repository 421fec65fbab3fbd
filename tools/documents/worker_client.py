"""Read files in a worker process, so that a file that crashes the parser or exceeds a limit only fails itself.

All methods block: call them in a thread.
"""

from pathlib import Path

from sleuth.tools.documents.loading import NO_LOADERS, LoadedDocument, Loaders, is_plain, load
from sleuth.tools.documents.resource_limits import BOUNDS, Bounds, printable
from sleuth.tools.documents.worker import Worker, WorkerError
from sleuth.tools.errors import DocumentError

LIGHT_BYTES = 256 << 10
"""Plain text up to this size is read in this process: its time and memory grow with its size alone."""


class FileReader:
    """Reader of single files; `stop` ends the worker process, `close` ends it for good."""

    def __init__(self, *, loaders: Loaders = NO_LOADERS, bounds: Bounds = BOUNDS) -> None:
        self._loaders = loaders
        self._bounds = bounds
        self._worker = Worker("file", bounds)
        self.stop = self._worker.stop
        self.close = self._worker.close

    def read(self, path: Path) -> LoadedDocument:
        """Read one file.

        Raises:
            DocumentError: the file has no text, cannot be parsed or exceeds the bounds.
            StoreError: the reader is closed.
        """
        if _is_light(path, self._loaders):
            return load(path, loaders=self._loaders, bounds=self._bounds)
        given = {"path": str(path), "loaders": dict(self._loaders)}
        try:
            read = self._worker.call(given, seconds=self._bounds.patience)
        except WorkerError as error:
            raise DocumentError(f"{printable(path)}: {self._reason(error)}") from error
        if "error" in read:
            raise DocumentError(read["error"])
        return LoadedDocument(**read)

    def _reason(self, error: WorkerError) -> str:
        bounds = self._bounds
        return {
            "time": f"was given up after {bounds.patience:g} s. Leave it out.",
            "memory": f"takes more than {bounds.megabytes:,} MB to read. Split it, or raise SLEUTH_FILE_MEGABYTES.",
            "processor": f"takes more than {bounds.seconds:,} s to read. Split it, or raise SLEUTH_FILE_SECONDS.",
            "signal": f"crashes the parser ({error.detail}). Save it again, or leave it out.",
            "exit": f"cannot be read ({error.detail}). Save it again, or leave it out.",
        }[error.cause]


def _is_light(path: Path, loaders: Loaders) -> bool:
    """Return whether the file needs no worker, which is also so if it cannot be opened."""
    try:
        size = path.stat().st_size if path.is_file() else 0
    except OSError:
        return True
    return size == 0 or (is_plain(path, loaders) and size <= LIGHT_BYTES)
