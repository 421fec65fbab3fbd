"""`restore`: put the data of a backup into a home, after all of it was checked.

The archive is extracted next to the data, and each member is compared with its checksum. Then a mark in the home
excludes all other use while the data is replaced. A restore that was killed is repeated; until then the mark remains
if anything was replaced.
"""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from sleuth.studio.backup import contents, postgres
from sleuth.studio.backup.archive import Manifest, open_archive
from sleuth.tools.errors import StoreBusy, StoreError, UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.storage import RESTORING, hold

_STAGING = "restore"
"""Folder in SLEUTH_HOME with the extracted archive."""


async def restore(settings: Settings, file: Path, *, force: bool = False) -> Manifest:
    """Replace the documents and runs of a home, of all owners, with those of a backup.

    Args:
        settings: the home, and the database if the backup was made with Postgres.
        file: the archive.
        force: replace existing data.

    Returns:
        The manifest of the archive.

    Raises:
        UsageError: the file does not exist, the home has data and `force` is not set, or the backup belongs to the
            other kind of database.
        StoreBusy: another process uses the home.
        StoreError: the archive is damaged, or the data cannot be written.
    """
    async with hold(settings.home, "exclusive", command="sleuth restore", wait=settings.wait):
        return await asyncio.to_thread(_restore, settings, file, force)


def _restore(settings: Settings, file: Path, force: bool) -> Manifest:
    staging, mark = settings.home / _STAGING, settings.home / RESTORING
    with open_archive(file) as archive:
        _check_database(archive.manifest, settings)
        if not (force or mark.exists()):
            _require_empty(settings)
        _require_unused(settings)
        shutil.rmtree(staging, ignore_errors=True)  # of a restore that was killed
        try:
            archive.extract(staging)
        except (OSError, StoreError) as error:
            shutil.rmtree(staging, ignore_errors=True)
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"{settings.home} cannot be written: {error}. Nothing was changed. Free some space."
            ) from error
    mark.touch()
    _flush(settings.home)
    if archive.manifest.database == "postgres":
        postgres.load(settings, staging)
    _replace(settings, staging)
    _flush(settings.home)
    mark.unlink()
    shutil.rmtree(staging)
    return archive.manifest


def _check_database(manifest: Manifest, settings: Settings) -> None:
    here = "postgres" if settings.database_url else "sqlite"
    if manifest.database != here:
        advice = "Unset SLEUTH_DATABASE_URL" if here == "postgres" else "Set SLEUTH_DATABASE_URL to an empty database"
        raise UsageError(f"The backup was made with {_NAMES[manifest.database]}. {advice} to restore it.")


_NAMES = {"postgres": "Postgres", "sqlite": "SQLite"}


def _require_empty(settings: Settings) -> None:
    if any(path.exists() for path in contents.databases(settings).values()) or (
        settings.database_url is not None and postgres.has_rows(settings)
    ):
        where = "The database" if settings.database_url else str(settings.home)
        raise UsageError(f"{where} has documents or runs already. Add --force to replace all of them.")


def _require_unused(settings: Settings) -> None:
    """Raise StoreBusy if another process has a SQLite database open, such as an idle server."""
    for path in contents.databases(settings).values():
        if not path.exists():
            continue
        with closing(sqlite3.connect(path, timeout=0)) as connection:
            try:  # leaving the write-ahead log needs to be alone
                connection.execute("PRAGMA journal_mode=DELETE")
            except sqlite3.OperationalError as error:
                raise StoreBusy(f"{path} is in use by another process. Stop `sleuth serve`, then try again.") from error
            except sqlite3.DatabaseError:  # it is damaged, and will be replaced
                continue


def _replace(settings: Settings, staging: Path) -> None:
    """Move the extracted data into its places; what is derived is removed, and built again when it is needed."""
    folders = (*contents.FOLDERS, contents.CHROMA, *contents.DERIVED)
    places = contents.databases(settings) | {name: settings.home / name for name in (*folders, *contents.FILES)}
    for name, place in places.items():
        new = staging / name
        if new.exists() or name not in contents.FILES:
            for path in (place, *(place.with_name(f"{place.name}{suffix}") for suffix in ("-wal", "-shm"))):
                _remove(path)
        if new.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(new, place)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _flush(folder: Path) -> None:
    """Write the entries of a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
