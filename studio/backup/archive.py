"""The archive of a backup: a zip file with a manifest that has the size and SHA-256 of each member.

A zip file ends with its table of contents, and the manifest is written last: an archive that was cut off cannot be
taken for a whole one. All functions block: call them in a thread.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from pydantic import BaseModel, ValidationError

from sleuth.tools.errors import StoreError, StoreTooNew, UsageError

FORMAT = 1
MANIFEST = "manifest.json"
POSTGRES = "postgres"
"""Folder of the members that go into Postgres."""

UNREADABLE = (BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, ValueError, zlib.error)
"""Errors that `zipfile` raises for a damaged archive."""

_BLOCK = 1 << 20
_LEVEL = 1  # vectors and original files hardly become smaller at a higher one


class Member(BaseModel):
    """One file of the archive."""

    sha256: str
    bytes: int


class Manifest(BaseModel):
    """The contents of an archive; `settings` are those of the backup, for information and without secrets."""

    format: int
    release: str
    created_at: str
    database: Literal["sqlite", "postgres"]
    schemas: dict[str, int]
    counts: dict[str, int]
    left_out: list[str]
    settings: dict[str, Any]
    members: dict[str, Member]


class ArchiveWriter:
    """Writes members to an archive and records their sizes and hashes."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self.members: dict[str, Member] = {}

    @contextmanager
    def member(self, name: str) -> Iterator["MemberWriter"]:
        """Write one member while the block is open."""
        with self._archive.open(name, "w", force_zip64=True) as out:
            writer = MemberWriter(out)
            yield writer
        self.members[name] = Member(sha256=writer.hash.hexdigest(), bytes=writer.bytes)

    def add_file(self, name: str, file: Path) -> None:
        """Copy a file; do nothing if it no longer exists."""
        try:
            source = file.open("rb")
        except FileNotFoundError:
            return
        with source, self.member(name) as out:
            while block := source.read(_BLOCK):
                out.write(block)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest, as the last member."""
        self._archive.writestr(MANIFEST, manifest.model_dump_json(indent=1))


class MemberWriter:
    """Writes one member and computes its hash."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.hash = sha256()
        self.bytes = 0

    def write(self, block: bytes) -> None:
        """Append a block."""
        self._out.write(block)
        self.hash.update(block)
        self.bytes += len(block)


def new_archive(file: Path) -> ZipFile:
    """Return an empty archive for writing."""
    return ZipFile(file, "w", ZIP_DEFLATED, compresslevel=_LEVEL)


class ArchiveReader:
    """An archive that is read; each member is checked while it is read."""

    def __init__(self, file: Path, archive: ZipFile) -> None:
        self._file = file
        self._archive = archive
        self.manifest = self._read_manifest()

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a member; raise StoreError at its end if it is not what the manifest names."""
        wanted, found, size = self.manifest.members[name], sha256(), 0
        try:
            with self._archive.open(name) as source:
                while block := source.read(_BLOCK):
                    found.update(block)
                    size += len(block)
                    yield block
        except UNREADABLE as error:
            raise self._damaged(f"{name} cannot be read ({error})") from error
        if (found.hexdigest(), size) != (wanted.sha256, wanted.bytes):
            raise self._damaged(f"{name} differs from its checksum")

    def extract(self, folder: Path) -> None:
        """Write all members below a folder and check them."""
        for name in self.manifest.members:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                out.writelines(self.blocks(name))
                out.flush()
                os.fsync(out.fileno())

    def _read_manifest(self) -> Manifest:
        try:
            manifest = Manifest.model_validate_json(self._archive.read(MANIFEST))
        except (KeyError, ValidationError, *UNREADABLE) as error:
            raise self._damaged(f"it has no manifest of `sleuth backup` ({str(error).splitlines()[0]})") from error
        if manifest.format > FORMAT:
            raise StoreTooNew(f"{self._file} was written by sleuth {manifest.release}. Upgrade sleuth to restore it.")
        names = {info.filename for info in self._archive.infolist()} - {MANIFEST}
        if names != set(manifest.members) or not all(map(_is_inside, names)):
            raise self._damaged("its members are not those of its manifest")
        return manifest

    def _damaged(self, reason: str) -> StoreError:
        return StoreError(f"{self._file} is not a complete backup: {reason}. Use another backup.")


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


@contextmanager
def open_archive(file: Path) -> Iterator[ArchiveReader]:
    """Open an archive and read its manifest.

    Raises:
        UsageError: the file does not exist.
        StoreError: it is not a complete archive, or a newer release wrote it (StoreTooNew).
    """
    try:
        archive = ZipFile(file)
    except FileNotFoundError:
        raise UsageError(f"{file} does not exist.") from None
    except UNREADABLE as error:
        raise StoreError(f"{file} is not a complete backup: {error}. Use another backup.") from error
    with archive:
        yield ArchiveReader(file, archive)


def verify(file: Path) -> Manifest:
    """Read a whole archive, check every member, and return its manifest.

    Raises:
        UsageError: the file does not exist.
        StoreError: it is not a complete archive, or a newer release wrote it (StoreTooNew).
    """
    with open_archive(file) as reader:
        for name in reader.manifest.members:
            for _ in reader.blocks(name):
                pass
        return reader.manifest
