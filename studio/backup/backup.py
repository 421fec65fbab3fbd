"""`back_up`: a consistent copy of a home in one archive, made while others read, ask and serve.

The lock on the home is held shared, so no document and no run is deleted meanwhile; each database is copied as of one
moment. The archive gets its name only when it is complete.
"""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock

from sleuth.studio.backup import contents, postgres
from sleuth.studio.backup.archive import FORMAT, ArchiveWriter, Manifest, new_archive
from sleuth.tools.collection import INDEXING_LOCK
from sleuth.tools.errors import StoreDamaged, StoreError, UsageError
from sleuth.tools.optional_imports import DISTRIBUTION
from sleuth.tools.search.vectors import place_of
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold, require_restored
from sleuth.tools.types import now


async def back_up(settings: Settings, file: Path) -> Manifest:
    """Write a backup of all owners' documents and runs.

    Args:
        settings: the home, and the database if it is in Postgres.
        file: the archive to write; it must not exist.

    Returns:
        The manifest of the archive.

    Raises:
        UsageError: the file exists already, or there is nothing to back up.
        StoreBusy: another process is ingesting or deleting.
        StoreError: a database cannot be read, or the archive cannot be written.
    """
    if await asyncio.to_thread(file.exists):
        raise UsageError(f"{file} exists already. Choose another name; a backup is never overwritten.")
    if not (settings.database_url or any(path.exists() for path in contents.databases(settings).values())):
        raise UsageError(f"{settings.home} has no documents and no runs. Set SLEUTH_HOME to the folder to back up.")
    require_restored(settings.home)
    async with hold(settings.home, "shared", command="sleuth backup", wait=settings.wait):
        return await asyncio.to_thread(_write, settings, file)


def _write(settings: Settings, file: Path) -> Manifest:
    draft = file.with_name(f"{file.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)  # of a backup that was killed
    try:
        draft.mkdir(mode=0o700)
        manifest = _fill(settings, draft)
        with (draft / "archive").open("rb") as made:
            os.fsync(made.fileno())
        (draft / "archive").chmod(0o600)  # it has documents and questions in plain text
        (draft / "archive").replace(file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error}. Choose a place with enough free space.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _fill(settings: Settings, draft: Path) -> Manifest:
    counts: dict[str, int] = {}
    schemas: dict[str, int] = {}
    with new_archive(draft / "archive") as archive:
        writer = ArchiveWriter(archive)
        for name, path in contents.databases(settings).items():
            if path.exists():
                copy = draft / name
                _copy_database(path, copy)
                with closing(sqlite3.connect(copy)) as connection:
                    _describe(connection, counts, schemas)
                writer.add_file(name, copy)
                copy.unlink()
        if settings.database_url is not None:
            postgres.dump(settings, writer, counts, schemas)
        _copy_files(settings.home, writer, draft)
        counts["originals"] = sum(name.startswith("originals/") for name in writer.members)
        manifest = Manifest(
            format=FORMAT,
            release=version(DISTRIBUTION),
            created_at=now(),
            database="postgres" if settings.database_url else "sqlite",
            schemas=schemas,
            counts=counts,
            left_out=["keyword index", "entity graph", *(["vectors"] if isinstance(place_of(settings), str) else [])],
            settings=settings.without_secrets(),
            members=writer.members,
        )
        writer.finish(manifest)
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


def _describe(connection: sqlite3.Connection, counts: dict[str, int], schemas: dict[str, int]) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    contents.describe(tables, lambda query: connection.execute(query).fetchone()[0], counts, schemas)


def _copy_files(home: Path, writer: ArchiveWriter, draft: Path) -> None:
    for name in contents.FILES:
        writer.add_file(name, home / name)
    for folder in contents.FOLDERS:
        _copy_folder(home, folder, writer)
    if (home / contents.CHROMA_DATABASE).exists():
        with FileLock(home / INDEXING_LOCK):
            _copy_database(home / contents.CHROMA_DATABASE, draft / "chroma")
            writer.add_file(contents.CHROMA_DATABASE, draft / "chroma")
            (draft / "chroma").unlink()
            _copy_folder(home, contents.CHROMA, writer, skipped=contents.CHROMA_DATABASE)


def _copy_folder(home: Path, folder: str, writer: ArchiveWriter, *, skipped: str = "//") -> None:
    for path in sorted((home / folder).rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_file() and not name.startswith(skipped):
            writer.add_file(name, path)
