"""`sleuth backup` and `sleuth restore`: one archive with the databases, vectors and files that cannot be derived.

The archive is a zip file with a manifest. It has a checksum of each member and ends with its table of contents: an
archive that was cut off cannot be read.

A backup is made while others read, ask and serve: the lock on the home is held shared, so no document and no run is
deleted meanwhile, and each database is copied as of one moment. The archive gets its name only when it is complete.

A restore extracts the archive next to the data, which compares each member with its checksum. Then a mark in the home
excludes all other use while the data is replaced. A restore that was killed is repeated; until then the mark remains
if anything was replaced.
"""

import asyncio
import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from pydantic import BaseModel

from sleuth.graphs.persistence.store import runs_folder
from sleuth.tools.collection.index_set import hold_indexes
from sleuth.tools.errors import DISTRIBUTION, StoreBusy, StoreDamaged, StoreError, StoreTooNew, UsageError
from sleuth.tools.home import RESTORING, require_restored
from sleuth.tools.settings import Settings
from sleuth.tools.storage.disk import remedy_of
from sleuth.tools.storage.locks import hold
from sleuth.tools.types import now

FORMAT = 1

MANIFEST = "manifest.json"
CATALOGUE, RUNS = "catalogue.db", "runs.sqlite"
CHROMA = "chroma"
CHROMA_DATABASE = f"{CHROMA}/chroma.sqlite3"
_DATABASES = (CATALOGUE, RUNS, CHROMA_DATABASE)
"""Files that are copied as of one moment."""

_FOLDERS = ("originals", "uploads", CHROMA)
"""Original files of documents, uploads that wait to be ingested, vectors."""

_FILES = ("thresholds.json", "attributes.npz")
"""Results of calibration and training; a restore keeps those that the archive lacks."""

_DERIVED = ("keywords", "mentions", "names")
"""Folders that are built again when they are needed."""

_STAGING = "restore"
"""Folder in SLEUTH_HOME with the extracted archive."""

_COUNTED = {"documents": "sleuth_documents", "passages": "sleuth_passages", "runs": "sleuth_threads"}

_UNREADABLE = (BadZipFile, EOFError, LookupError, OSError, NotImplementedError, RuntimeError, ValueError, zlib.error)
"""Errors that `zipfile` and pydantic raise for a damaged archive."""


class Manifest(BaseModel):
    """The contents of an archive."""

    format: int
    release: str
    created_at: str
    counts: dict[str, int]


async def back_up(settings: Settings, file: Path) -> Manifest:
    """Write a backup of all owners' documents and runs to a new file, and return its manifest.

    Raises:
        UsageError: the file exists already, there is nothing to back up, or the data is in Postgres.
        StoreBusy: another process changes the documents or updates the indexes.
        StoreError: a database cannot be read, or the archive cannot be written.
    """
    places = _places(settings)
    if await asyncio.to_thread(file.exists):
        raise UsageError(f"{file} exists already. Choose another name; a backup is never overwritten.")
    if not _has_data(places):
        raise UsageError(f"{settings.home} has no documents and no runs. Set SLEUTH_HOME to the folder to back up.")
    require_restored(settings.home)
    async with hold(settings.home, "shared", command="sleuth backup", wait=settings.wait):
        return await asyncio.to_thread(_write, places, file)


def _write(places: Mapping[str, Path], file: Path) -> Manifest:
    draft = file.with_name(f"{file.name}.partial")
    archive = draft / "archive"
    shutil.rmtree(draft, ignore_errors=True)  # of a backup that was killed
    try:
        draft.mkdir(mode=0o700)
        # Vectors and original files hardly become smaller at a higher level.
        with ZipFile(archive, "w", ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as opened:
            manifest = _fill(opened, places, draft / "copy")
        with archive.open("rb") as written:
            os.fsync(written.fileno())
        archive.chmod(0o600)  # it has documents and questions in plain text
        archive.replace(file)
    except OSError as error:
        advice = "Choose a folder that exists, can be written and has enough space."
        raise StoreError(f"{file} cannot be written: {error}. {advice}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _fill(archive: ZipFile, places: Mapping[str, Path], copy: Path) -> Manifest:
    counts: dict[str, int] = {}
    for name, place in places.items():
        with hold_indexes(place.parent) if name == CHROMA and place.exists() else nullcontext():
            counts |= _add(archive, name, place, copy)
    counts["originals"] = sum(name.startswith("originals/") for name in archive.namelist())
    manifest = Manifest(format=FORMAT, release=version(DISTRIBUTION), created_at=now(), counts=counts)
    archive.writestr(MANIFEST, manifest.model_dump_json(indent=1))
    return manifest


def _add(archive: ZipFile, name: str, place: Path, copy: Path) -> dict[str, int]:
    """Add a file or the files of a folder, if they exist; return the counts of a database."""
    counts: dict[str, int] = {}
    for path in filter(Path.is_file, sorted([place, *place.rglob("*")])):
        inside = PurePosixPath(name, path.relative_to(place)).as_posix()
        if inside in _DATABASES:
            counts |= _copy_database(path, copy)
            archive.write(copy, inside)
            copy.unlink()
        elif not inside.startswith(_DATABASES):  # such as a write-ahead log
            with suppress(FileNotFoundError):  # another process may delete it
                archive.write(path, inside)
    return counts


def _copy_database(source: Path, target: Path) -> dict[str, int]:
    """Copy a SQLite database as of one moment, while others may write to it; return the numbers of its rows."""
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as old,
            closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)
            (result,) = new.execute("PRAGMA quick_check(1)").fetchone()
            if result != "ok":
                raise sqlite3.DatabaseError(" ".join(result.split()))
            tables = {name for (name,) in new.execute("SELECT name FROM sqlite_master")}
            queries = {name: f"SELECT count(*) FROM {table}" for name, table in _COUNTED.items() if table in tables}  # noqa: S608
            return {name: int(new.execute(query).fetchone()[0]) for name, query in queries.items()}
    except sqlite3.OperationalError as error:
        raise StoreError(f"{source} cannot be copied: {error}. {remedy_of(source, 'Try again.')}") from error
    except sqlite3.Error as error:
        advice = "Restore an earlier backup with `sleuth restore`."
        if source.parent.name == CHROMA:
            advice = f"Its vectors are derived from the documents: stop `sleuth serve`, and delete {source.parent}."
        raise StoreDamaged(f"{source} is damaged ({error}), so no backup was written. {advice}") from error


async def restore(settings: Settings, file: Path, *, force: bool = False) -> Manifest:
    """Replace the documents and runs of a home, of all owners, with those of a backup; return its manifest.

    Args:
        settings: the home.
        file: the archive.
        force: replace existing data.

    Raises:
        UsageError: the file does not exist, the home has data and `force` is not set, or the data is in Postgres.
        StoreBusy: another process uses the home.
        StoreError: the archive is damaged, or the data cannot be written.
    """
    async with hold(settings.home, "alone", command="sleuth restore", wait=settings.wait):
        return await asyncio.to_thread(_restore, settings, file, force)


def _restore(settings: Settings, file: Path, force: bool) -> Manifest:
    staging, mark, places = settings.home / _STAGING, settings.home / RESTORING, _places(settings)
    shutil.rmtree(staging, ignore_errors=True)  # of a restore that was killed
    try:
        with open_archive(file) as (archive, manifest):
            if _has_data(places) and not (force or mark.exists()):
                raise UsageError(f"{settings.home} has documents or runs already. Add --force to replace all of them.")
            _require_unused(places[CATALOGUE])
            _require_unused(places[RUNS])
            try:
                archive.extractall(staging)
            except OSError as error:
                raise StoreError(
                    f"{staging} cannot be written: {error}. Nothing was changed. Free some space."
                ) from error
        os.sync()
        mark.touch()
        os.sync()
        _replace(places | {name: settings.home / name for name in _DERIVED}, staging)
        os.sync()
        mark.unlink()
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return manifest


def _require_unused(path: Path) -> None:
    """Raise StoreBusy if another process has a SQLite database open, such as an idle server."""
    if path.exists():
        with closing(sqlite3.connect(path, timeout=0)) as connection:
            try:  # leaving the write-ahead log needs to be alone
                connection.execute("PRAGMA journal_mode=DELETE")
            except sqlite3.OperationalError as error:
                raise StoreBusy(f"{path} is in use. Stop `sleuth serve` and `sleuth mcp`, then try again.") from error
            except sqlite3.DatabaseError:  # it is damaged, and will be replaced
                return


def _replace(places: Mapping[str, Path], staging: Path) -> None:
    """Move the extracted data into its places; what is derived is removed, and built again when it is needed."""
    for name, place in places.items():
        new = staging / name
        if new.exists() or name not in _FILES:
            for path in (place, *(place.with_name(f"{place.name}{suffix}") for suffix in ("-wal", "-shm"))):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        if new.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(new, place)


def _places(settings: Settings) -> dict[str, Path]:
    """Return the files and folders of a home by their names in the archive; they need not exist.

    Raises:
        UsageError: documents and runs are in Postgres.
    """
    if settings.database_url is not None:
        raise UsageError(
            "SLEUTH_DATABASE_URL is set: documents and runs are in Postgres, which `sleuth backup` and "
            "`sleuth restore` do not copy. Use pg_dump and pg_restore, and copy SLEUTH_HOME."
        )
    parts = {name: settings.home / name for name in (CATALOGUE, RUNS, *_FILES, *_FOLDERS)}
    return parts | {RUNS: runs_folder(settings) / RUNS}


def _has_data(places: Mapping[str, Path]) -> bool:
    return places[CATALOGUE].exists() or places[RUNS].exists()


@contextmanager
def open_archive(file: Path) -> Iterator[tuple[ZipFile, Manifest]]:
    """Open an archive to read its members in the block; raises as `verify` does."""
    if not file.exists():
        raise UsageError(f"{file} does not exist.")
    try:
        with ZipFile(file) as archive:
            manifest = Manifest.model_validate_json(archive.read(MANIFEST))
            if manifest.format > FORMAT:
                raise StoreTooNew(f"{file} was written by sleuth {manifest.release}. Upgrade sleuth to restore it.")
            yield archive, manifest
    except _UNREADABLE as error:
        reason = next(iter(str(error).splitlines()), "a part of it is missing")
        raise StoreError(f"{file} is not a complete backup: {reason}. Use another backup.") from error


def verify(file: Path) -> Manifest:
    """Read a whole archive, compare every member with its checksum, and return the manifest.

    Raises:
        UsageError: the file does not exist.
        StoreError: it is not a complete archive, or a newer release wrote it (StoreTooNew).
    """
    with open_archive(file) as (archive, manifest):
        if damaged := archive.testzip():
            raise BadZipFile(f"{damaged} differs from its checksum")
    return manifest
