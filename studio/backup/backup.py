"""`back_up`: a consistent copy of a home in one archive, made while others read, ask and serve.

The lock on the home is held shared, so no document and no run is deleted meanwhile; each database is copied as of one
moment. The archive gets its name only when it is complete.
"""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from filelock import FileLock

from sleuth.studio.backup.archive import (
    CHROMA,
    CHROMA_DATABASE,
    FILES,
    FOLDERS,
    FORMAT,
    MANIFEST,
    Manifest,
    databases,
)
from sleuth.tools.collection import INDEXING_LOCK
from sleuth.tools.errors import StoreDamaged, StoreError, UsageError
from sleuth.tools.optional_imports import DISTRIBUTION
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold, require_restored
from sleuth.tools.types import now

_COUNTS = {"documents": "sleuth_documents", "passages": "sleuth_passages", "runs": "sleuth_threads"}
"""Tables whose rows are counted in the manifest."""

_SCHEMAS = {
    "catalogue": ("sleuth_meta", "SELECT value FROM sleuth_meta WHERE key = 'schema_version'"),
    "runs": ("sleuth_runs_version", "SELECT max(version) FROM sleuth_runs_version"),
}
"""Tables with the versions of schemas, and the queries for them."""


async def back_up(settings: Settings, file: Path) -> Manifest:
    """Write a backup of all owners' documents and runs.

    Args:
        settings: the home.
        file: the archive to write; it must not exist.

    Returns:
        The manifest of the archive.

    Raises:
        UsageError: the file exists already, there is nothing to back up, or the data is in Postgres.
        StoreBusy: another process is ingesting or deleting.
        StoreError: a database cannot be read, or the archive cannot be written.
    """
    sources = databases(settings)
    if await asyncio.to_thread(file.exists):
        raise UsageError(f"{file} exists already. Choose another name; a backup is never overwritten.")
    if not any(path.exists() for path in sources.values()):
        raise UsageError(f"{settings.home} has no documents and no runs. Set SLEUTH_HOME to the folder to back up.")
    require_restored(settings.home)
    async with hold(settings.home, "shared", command="sleuth backup", wait=settings.wait):
        return await asyncio.to_thread(_write, settings, sources, file)


def _write(settings: Settings, sources: dict[str, Path], file: Path) -> Manifest:
    draft = file.with_name(f"{file.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)  # of a backup that was killed
    try:
        draft.mkdir(mode=0o700)
        # Vectors and original files hardly become smaller at a higher level.
        with ZipFile(draft / "archive", "w", ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as archive:
            manifest = _fill(archive, settings, sources, draft / "copy")
        with (draft / "archive").open("rb") as made:
            os.fsync(made.fileno())
        (draft / "archive").chmod(0o600)  # it has documents and questions in plain text
        (draft / "archive").replace(file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error}. Choose a place with enough free space.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _fill(archive: ZipFile, settings: Settings, sources: dict[str, Path], copy: Path) -> Manifest:
    counts: dict[str, int] = {}
    schemas: dict[str, int] = {}
    for name, path in sources.items():
        if path.exists():
            _copy_database(path, copy)
            _describe(copy, counts, schemas)
            archive.write(copy, name)
            copy.unlink()
    for name in FILES:
        _add(archive, settings.home / name, name)
    for folder in FOLDERS:
        _add_folder(archive, settings.home, folder)
    if (settings.home / CHROMA_DATABASE).exists():
        with FileLock(settings.home / INDEXING_LOCK):
            _copy_database(settings.home / CHROMA_DATABASE, copy)
            archive.write(copy, CHROMA_DATABASE)
            _add_folder(archive, settings.home, CHROMA)
    counts["originals"] = sum(name.startswith("originals/") for name in archive.namelist())
    manifest = Manifest(
        format=FORMAT,
        release=version(DISTRIBUTION),
        created_at=now(),
        database="sqlite",
        schemas=schemas,
        counts=counts,
        left_out=["keyword index", "entity graph", *(["vectors"] if settings.chroma_url else [])],
        settings=settings.without_secrets(),
    )
    archive.writestr(MANIFEST, manifest.model_dump_json(indent=1))
    return manifest


def _copy_database(source: Path, target: Path) -> None:
    """Copy a SQLite database as of one moment; others may write to it meanwhile."""
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as old,
            closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)
            (result,) = new.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise StoreDamaged(f"{source} cannot be copied: {error}.") from error
    if result != "ok":
        raise StoreDamaged(f"{source} is damaged ({result}), so no backup of it was written.")


def _describe(database: Path, counts: dict[str, int], schemas: dict[str, int]) -> None:
    """Add the numbers of rows and the schema versions of the tables that a database has."""
    with closing(sqlite3.connect(database)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for name, table in _COUNTS.items():
            if table in tables:
                (counts[name],) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        for name, (table, query) in _SCHEMAS.items():
            if table in tables:
                schemas[name] = int(connection.execute(query).fetchone()[0])


def _add_folder(archive: ZipFile, home: Path, folder: str) -> None:
    for path in sorted((home / folder).rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_file() and not name.startswith(CHROMA_DATABASE):
            _add(archive, path, name)


def _add(archive: ZipFile, path: Path, name: str) -> None:
    with suppress(FileNotFoundError):  # another process may delete it
        archive.write(path, name)
