"""Marks that somebody is there: locked files, of which the operating system knows when their owners die.

The number of a process would not tell: in a container each one may have the same.
"""

from contextlib import suppress
from pathlib import Path

from filelock import FileLock


class Mark:
    """A file that is locked until it is removed or its process ends; the lock goes with the object."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where the file cannot be made."""
        self._path = path
        self._lock = _lock_of(path)
        self._lock.acquire()

    def remove(self) -> None:
        """Its owner leaves."""
        with suppress(PermissionError):  # some systems keep what somebody has open
            self._path.unlink(missing_ok=True)
        self._lock.release()


def is_left(path: Path) -> bool:
    """Whether the owner of a mark has died; where that cannot be seen it has not."""
    lock = _lock_of(path)
    try:
        lock.acquire(timeout=0)
    except OSError:  # among them filelock's Timeout
        return False
    lock.release()
    return True


def _lock_of(path: Path) -> FileLock:
    return FileLock(path, thread_local=False)  # taken in one thread, given back in another
