"""What reading one file may take, to which the system holds the process that reads it; and what is no file at all."""

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path, PurePath

from sleuth.tools.errors import DocumentError


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What one file may take.

    seconds: of processor time; so much is kept on every machine but Windows.
    megabytes: of address space, everything that the reading process has loaded included; kept on Linux.
    characters: of text that come of it.
    """

    seconds: int = 120
    megabytes: int = 2_048
    characters: int = 10_000_000

    @property
    def patience(self) -> float:
        """Seconds on the clock after which a file is given up that does not even use the processor."""
        return 60.0 + 10.0 * self.seconds


BOUNDS = Bounds()


def ordinary_size(path: Path) -> int:
    """The bytes of an ordinary file; a pipe or a device might never end.

    Raises:
        DocumentError: it is something else.
        OSError: it is not there, or may not be looked at.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError("is a folder that may not be read, or no ordinary file. Check its permissions.")
    return status.st_size


def shown(path: PurePath) -> str:
    """The path on one line, whatever bytes are in it: what cannot be printed or stored stands there as an escape."""
    name = os.fsencode(path).decode("utf-8", "backslashreplace")
    return name if name.isprintable() else name.encode("unicode_escape").decode()


def limit_memory(megabytes: int) -> None:
    """Bounds the address space of this process, which only Linux keeps, and leaves no core where it dies of it."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_processor(seconds: int) -> None:
    """Gives this process so many further seconds of processor time; after them the system ends it by SIGXCPU."""
    if sys.platform != "win32":
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def peak_megabytes() -> int:
    """The most memory that this process has had at once; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
