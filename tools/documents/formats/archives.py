"""Zip files: office documents, books, and archives of other files."""

import re
import stat
import zipfile
from contextlib import suppress
from io import BytesIO
from pathlib import Path, PurePosixPath

from sleuth.tools.documents.formats.content import damage_of
from sleuth.tools.errors import DocumentError

ZIP = ".zip"

_MANIFEST = "META-INF/manifest.xml"
"""The list of the parts of an OpenDocument file, and of how they are encrypted."""
_ENCRYPTED = "is encrypted. Save it without a password."
MAX_UNPACKED_BYTES = 512 << 20
"""A zip file that unpacks to more than this is refused before it is unpacked."""
MAX_MEMBERS = 10_000
"""An archive of more files is refused."""


def open_zip(data: bytes | Path, *, kind: str = "a zip file") -> zipfile.ZipFile:
    """Return a zip file; raise DocumentError if it is none, encrypted or too large.

    Args:
        data: the file, or its content.
        kind: the format in error messages.
    """
    with damage_of(kind):
        archive = zipfile.ZipFile(BytesIO(data) if isinstance(data, bytes) else data)
    entries = archive.infolist()
    if any(entry.flag_bits & 1 for entry in entries):
        raise DocumentError(_ENCRYPTED)
    if (size := sum(entry.file_size for entry in entries)) > MAX_UNPACKED_BYTES:
        raise DocumentError(
            f"unpacks to {size >> 20:,} MiB, and at most {MAX_UNPACKED_BYTES >> 20} are read. Split it."
        )
    with damage_of(kind), suppress(KeyError):
        if b":encryption-data" in archive.read(_MANIFEST):
            raise DocumentError(_ENCRYPTED)
    return archive


def members_of(path: Path) -> list[str]:
    """Return the names of the files in an archive, in order, without folders, links and hidden files.

    Raises:
        DocumentError: the archive cannot be read or has too many files.
    """
    with open_zip(path) as archive:
        all_entries = (entry for entry in archive.infolist() if not entry.is_dir())
        entries = [entry for entry in all_entries if not stat.S_ISLNK(entry.external_attr >> 16)]
    names = sorted({entry.filename for entry in entries if not _is_hidden(entry.filename)})
    if len(names) > MAX_MEMBERS:
        raise DocumentError(f"has {len(names):,} files, and at most {MAX_MEMBERS:,} are read. Split it.")
    return names


def read_member(data: bytes, name: str, *, limit: int) -> bytes:
    """Return a file of an archive; raise DocumentError if it cannot be unpacked or has more bytes than `limit`.

    A name that is absolute or leads out of the archive is refused: it would be that of another document.
    """
    if _is_outside(name):
        raise DocumentError(
            "has a name that is absolute, or has `..` or a backslash in it. Save the archive with names relative to it."
        )
    with open_zip(data) as archive, damage_of("a whole file of a zip archive"):
        if archive.getinfo(name).file_size > limit:
            raise DocumentError(f"unpacks to more than {limit >> 20} MiB. Split it.")
        with archive.open(name) as member:
            return member.read(limit)


def _is_hidden(name: str) -> bool:
    return not _is_outside(name) and any(
        part.startswith((".", "~$")) or part == "__MACOSX" for part in PurePosixPath(name).parts
    )


def _is_outside(name: str) -> bool:
    """Return whether a name is not that of a file below its archive, on some operating system."""
    return name.startswith("/") or "\\" in name or ".." in name.split("/") or bool(re.match("[A-Za-z]:", name))
