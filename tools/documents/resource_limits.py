"""Resource limits for reading one file, enforced by the operating system on the reading process."""

import os
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

from sleuth.tools.errors import DocumentError

MIB = 1 << 20
MAX_FILE_BYTES = 64 * MIB


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Limits for one file, and how its scanned pages are read.

    seconds: processor time; enforced on all systems except Windows.
    megabytes: address space of the reading process, including all loaded code; enforced on Linux.
    characters: length of the text.
    ocr_languages: Tesseract's names of the languages of scanned pages.
    """

    seconds: int = 120
    megabytes: int = 2_048
    characters: int = 10_000_000
    ocr_languages: str = "eng"

    @property
    def patience(self) -> float:
        """Wall-clock seconds after which a file is given up, even if it does not use the processor."""
        return 60.0 + 10.0 * self.seconds


BOUNDS = Bounds()

is_folder = os.path.isdir  # Path.is_dir raises an error for a folder inside one that may not be entered


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; raise DocumentError if it cannot be opened, is too large or empty."""
    try:
        if (size := ordinary_size(path)) > MAX_FILE_BYTES:
            most = MAX_FILE_BYTES / MIB
            raise DocumentError(f"has {size / MIB:,.1f} MiB, and at most {most:,.1f} MiB are read. Split it.")
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot be opened ({error.strerror}). Check that it exists and is readable.") from error
    if not data:
        raise DocumentError("is empty. Fill it, or leave it out.")
    return data


def ordinary_size(path: Path) -> int:
    """Return the size of an ordinary file in bytes; a pipe or a device might never end.

    Raises:
        DocumentError: it is not an ordinary file.
        OSError: it is missing, or may not be examined.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError("is not a readable file. Check its permissions, or leave it out.")
    return status.st_size


def within(path: PurePath, member: str) -> PurePath:
    """Return the path of a file in an archive, always below that of the archive; without a name, the path itself."""
    return type(path)(f"{path}/{member}") if member else path


def printable(path: PurePath, member: str = "") -> str:
    """Return the path on one line, also that of a file in an archive; bytes that cannot be stored are escaped."""
    name = os.fsencode(within(path, member)).decode("utf-8", "backslashreplace")
    return name if name.isprintable() else name.encode("unicode_escape").decode()


def limit_memory(megabytes: int) -> None:
    """Limit the address space of this process (Linux only), and write no core file if it exceeds the limit."""
    if sys.platform == "linux":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = megabytes << 20 if most == resource.RLIM_INFINITY else min(megabytes << 20, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_processor(seconds: int) -> None:
    """Limit this process to `seconds` more of processor time; the system then ends it by SIGXCPU."""
    if sys.platform != "win32":
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def peak_megabytes(process: int | Literal["self"] = "self") -> float:
    """Return the peak memory of a process in MiB; 0 on systems that have no /proc."""
    # `getrusage` would return the memory of the process that started this one, if that had more.
    status = Path(f"/proc/{process}/status")
    text = status.read_text(encoding="utf-8", errors="replace") if status.exists() else ""
    peak = re.search(r"^VmHWM:\s*(\d+) kB", text, re.MULTILINE)
    return int(peak[1]) / 1024 if peak else 0.0
