"""The archive of a backup: a zip file of the databases and folders of a home, and a manifest.

A zip file has a checksum of each member and ends with its table of contents: an archive that was cut off cannot be
read. All functions block: call them in a thread.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile, ZipFile

from pydantic import BaseModel, ValidationError
from sqlalchemy import URL

from sleuth.graphs.persistence import runs_url
from sleuth.tools.errors import StoreError, StoreTooNew, UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.storage import catalogue_url

FORMAT = 2
"""Archives of format 1 have a second checksum of each member, and may be of a Postgres database."""

MANIFEST = "manifest.json"
CHROMA = "chroma"
CHROMA_DATABASE = "chroma/chroma.sqlite3"
FOLDERS = ("originals", "uploads")
"""Original files of documents, and uploads that wait to be ingested."""

FILES = ("thresholds.json", "attributes.npz")
"""Results of calibration and training."""

_UNREADABLE = (BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, ValueError, zlib.error)
"""Errors that `zipfile` raises for a damaged archive."""


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


def databases(settings: Settings) -> dict[str, Path]:
    """Return the SQLite databases of a home by their names in the archive; they need not exist.

    Raises:
        UsageError: documents and runs are in Postgres.
    """
    if settings.database_url is not None:
        raise UsageError(
            "SLEUTH_DATABASE_URL is set: documents and runs are in Postgres, which `sleuth backup` and "
            "`sleuth restore` do not copy. Use pg_dump and pg_restore, and copy SLEUTH_HOME."
        )
    urls = catalogue_url(settings.home, None), runs_url(settings)
    files = [Path(url.database) for url in urls if isinstance(url, URL) and url.database]
    return {file.name: file for file in files}


@contextmanager
def open_archive(file: Path) -> Iterator[tuple[ZipFile, Manifest]]:
    """Open an archive to read its members in the block.

    Raises:
        UsageError: the file does not exist, or is the backup of a Postgres database.
        StoreError: it is not a complete archive, or a newer release wrote it (StoreTooNew).
    """
    if not file.exists():
        raise UsageError(f"{file} does not exist.")
    try:
        with ZipFile(file) as archive:
            manifest = Manifest.model_validate_json(archive.read(MANIFEST))
            _check(file, archive, manifest)
            yield archive, manifest
    except (KeyError, ValidationError, *_UNREADABLE) as error:
        reason = str(error).splitlines()[0]
        raise StoreError(f"{file} is not a complete backup: {reason}. Use another backup.") from error


def _check(file: Path, archive: ZipFile, manifest: Manifest) -> None:
    if manifest.format > FORMAT:
        raise StoreTooNew(f"{file} was written by sleuth {manifest.release}. Upgrade sleuth to restore it.")
    if manifest.database == "postgres":
        raise UsageError(f"{file} is the backup of a Postgres database. Restore it with sleuth {manifest.release}.")
    for name in archive.namelist():
        if name.startswith("/") or "\\" in name or ".." in name.split("/"):
            raise BadZipFile(f"{name} is outside the home")


def verify(file: Path) -> Manifest:
    """Read a whole archive, compare every member with its checksum, and return the manifest.

    Raises:
        UsageError: the file does not exist, or is the backup of a Postgres database.
        StoreError: it is not a complete archive, or a newer release wrote it (StoreTooNew).
    """
    with open_archive(file) as (archive, manifest):
        if damaged := archive.testzip():
            raise BadZipFile(f"{damaged} differs from its checksum")
    return manifest
