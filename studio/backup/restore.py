"""`restore`: put the data of a backup into a home, after all of it was checked.

The archive is extracted next to the data, and each member is compared with its checksum. Then a mark in the home
excludes all other use while the data is replaced. A restore that was killed is repeated; until then the mark remains
if anything was replaced.
"""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

from sleuth.studio.backup.archive import CHROMA, FILES, FOLDERS, Manifest, databases, open_archive
from sleuth.tools.errors import StoreBusy, StoreError, UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.storage import RESTORING, hold

_STAGING = "restore"
"""Folder in SLEUTH_HOME with the extracted archive."""

_DERIVED = ("keywords", "mentions", "names", "ingest", "examples")
"""Folders that are built again when they are needed; `ingest` has the positions of interrupted ingests."""


async def restore(settings: Settings, file: Path, *, force: bool = False) -> Manifest:
    """Replace the documents and runs of a home, of all owners, with those of a backup.

    Args:
        settings: the home.
        file: the archive.
        force: replace existing data.

    Returns:
        The manifest of the archive.

    Raises:
        UsageError: the file does not exist, the home has data and `force` is not set, or the data is in Postgres.
        StoreBusy: another process uses the home.
        StoreError: the archive is damaged, or the data cannot be written.
    """
    async with hold(settings.home, "exclusive", command="sleuth restore", wait=settings.wait):
        return await asyncio.to_thread(_restore, settings, file, force)


def _restore(settings: Settings, file: Path, force: bool) -> Manifest:
    staging, mark, targets = settings.home / _STAGING, settings.home / RESTORING, databases(settings)
    with open_archive(file) as (archive, manifest):
        if not (force or mark.exists()) and any(path.exists() for path in targets.values()):
            raise UsageError(f"{settings.home} has documents or runs already. Add --force to replace all of them.")
        _require_unused(targets.values())
        shutil.rmtree(staging, ignore_errors=True)  # of a restore that was killed
        _extract(archive, staging)
    mark.touch()
    _flush(settings.home)
    _replace(settings, targets, staging)
    _flush(settings.home)
    mark.unlink()
    shutil.rmtree(staging)
    return manifest


def _extract(archive: ZipFile, folder: Path) -> None:
    """Write all members below a folder, and none if one is damaged."""
    try:
        for name in archive.namelist():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, path.open("wb") as out:
                shutil.copyfileobj(source, out)
                out.flush()
                os.fsync(out.fileno())
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise StoreError(f"{folder} cannot be written: {error}. Nothing was changed. Free some space.") from error
        raise


def _require_unused(targets: Iterable[Path]) -> None:
    """Raise StoreBusy if another process has a SQLite database open, such as an idle server."""
    for path in targets:
        if not path.exists():
            continue
        with closing(sqlite3.connect(path, timeout=0)) as connection:
            try:  # leaving the write-ahead log needs to be alone
                connection.execute("PRAGMA journal_mode=DELETE")
            except sqlite3.OperationalError as error:
                raise StoreBusy(f"{path} is in use by another process. Stop `sleuth serve`, then try again.") from error
            except sqlite3.DatabaseError:  # it is damaged, and will be replaced
                continue


def _replace(settings: Settings, targets: dict[str, Path], staging: Path) -> None:
    """Move the extracted data into its places; what is derived is removed, and built again when it is needed."""
    places = targets | {name: settings.home / name for name in (*FOLDERS, CHROMA, *_DERIVED, *FILES)}
    for name, place in places.items():
        new = staging / name
        if new.exists() or name not in FILES:
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
