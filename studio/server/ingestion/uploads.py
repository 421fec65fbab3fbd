"""Stored uploads: files below SLEUTH_HOME, and a row with the progress of each upload.

The files of an upload wait in its own folder. At their turn they move to their owner's folder, so that a file that is
sent again replaces the document of the same name; afterwards the catalogue contains their text. Servers that share the
rows process only the uploads whose files are in their SLEUTH_HOME.
"""

import json
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field
from sqlalchemy import Column, Integer, MetaData, String, Table, Text, insert, select, update
from sqlalchemy.engine import Engine

from sleuth.tools.errors import StoreError
from sleuth.tools.storage import in_thread, make_tables, transaction

Outcome = Literal["added", "replaced", "unchanged"]

Status = Literal["waiting", "reading", "stopping", "stopped", "done", "failed"]
ENDS: tuple[Status, ...] = ("stopped", "done", "failed")

_OWNERS = "of-"

HOUR = 3600.0
"""Age in seconds at which a file without an upload is removed; storing an upload takes less time."""

metadata = MetaData()
ingests = Table(
    "sleuth_serve_ingests",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner", String(100), nullable=False),
    Column("files", Text, nullable=False),
    Column("status", String(10), nullable=False),
    Column("read", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("failed", Text, nullable=False),
    Column("at", String(40), nullable=False),
)

_IS_UNFINISHED = ingests.c.status.not_in(ENDS)


class Failure(BaseModel):
    """A file that could not be ingested; with an empty `source`, the error of the whole upload."""

    model_config = ConfigDict(frozen=True)

    source: str
    problem: str


class Ingest(BaseModel):
    """The progress of an upload; a file's name may contain folders."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)

    id: str
    owner: str = Field(exclude=True)
    files: tuple[str, ...]
    status: Status = "waiting"
    read: int = 0
    total: int = 0
    failed: tuple[Failure, ...] = ()
    at: str = ""
    outcomes: dict[str, Outcome] = Field(default={}, description="of the files ingested so far")

    @computed_field  # type: ignore[prop-decorator]  # mypy supports no decorator on a property
    @property
    def done(self) -> bool:
        """True if the ingest has ended."""
        return self.status in ENDS


class Uploads:
    """Store of uploads and their files. All methods raise StoreError if the database fails."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        """Create the table if it is missing; blocks."""
        self._engine = engine
        self._folder = folder
        make_tables(engine, metadata)

    @in_thread
    def add(self, ingest: Ingest, files: Mapping[str, BinaryIO]) -> None:
        """Store the files of an upload, then its row; raise StoreError if there is not enough space."""
        folder = self._folder / ingest.id
        try:
            folder.mkdir(parents=True)
            for name, file in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with (folder / name).open("wb") as out:
                    shutil.copyfileobj(file, out)
            with transaction(self._engine, write=True) as connection:
                connection.execute(insert(ingests).values(_row(ingest)))
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            problem = f"The files cannot be stored, none was accepted: {error.strerror}."
            raise StoreError(f"{problem} Send them again when the server has enough free space.") from error
        except StoreError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @in_thread
    def find(self, id: str) -> Ingest | None:
        """Return an upload of any owner."""
        found = self._select(ingests.c.id == id)
        return found[0] if found else None

    @in_thread
    def unfinished(self) -> list[Ingest]:
        """Return the uploads that have not ended and whose files are here, in the order in which they were sent."""
        return [each for each in self._select(_IS_UNFINISHED) if (self._folder / each.id).is_dir()]

    @in_thread
    def mark_stopping(self, id: str) -> None:
        """Store that the next start must not ingest the rest; do nothing if the upload has ended."""
        with transaction(self._engine, write=True) as connection:
            connection.execute(update(ingests).where(ingests.c.id == id, _IS_UNFINISHED).values(status="stopping"))

    @in_thread
    def finish(self, ingest: Ingest) -> None:
        """Store the end of an upload and remove its files."""
        with transaction(self._engine, write=True) as connection:
            connection.execute(update(ingests).where(ingests.c.id == ingest.id).values(_row(ingest)))
        for name, path in zip(ingest.files, self._paths(ingest), strict=True):
            if not (self._folder / ingest.id / name).exists():  # before it moves, one of this name is of another upload
                path.unlink(missing_ok=True)
                with suppress(OSError):  # it contains other files, or is gone
                    os.removedirs(path.parent)
        shutil.rmtree(self._folder / ingest.id, ignore_errors=True)

    def folder_of(self, owner: str) -> Path:
        """Return the folder of an owner's files while they are ingested; a document's source is a path in it."""
        return self._folder / f"{_OWNERS}{sha256(owner.encode()).hexdigest()[:16]}"

    @in_thread
    def place(self, ingest: Ingest) -> list[Path]:
        """Move files to their owner's folder; after a kill some of them are there already."""
        for name, path in zip(ingest.files, self._paths(ingest), strict=True):
            if (waiting := self._folder / ingest.id / name).exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                waiting.replace(path)
        return self._paths(ingest)

    @in_thread
    def remove_orphans(self) -> None:
        """Remove files without a row, which a kill may leave."""
        unfinished = self._select(_IS_UNFINISHED)
        needed = {self._folder / each.id for each in unfinished}
        needed |= {self.folder_of(each.owner) / Path(name).parts[0] for each in unfinished for name in each.files}
        folders = [path for path in self._folder.glob("*") if not path.name.startswith(_OWNERS)]
        for path in [*folders, *self._folder.glob(f"{_OWNERS}*/*")]:
            with suppress(FileNotFoundError):  # another server may remove it too
                if path in needed or time.time() - path.stat().st_mtime < HOUR:
                    continue
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()

    def _paths(self, ingest: Ingest) -> list[Path]:
        return [self.folder_of(ingest.owner) / name for name in ingest.files]

    def _select(self, wanted: Any) -> list[Ingest]:  # noqa: ANN401 - a condition
        with transaction(self._engine) as connection:
            found = connection.execute(select(ingests).where(wanted).order_by(ingests.c.at))
            rows = [dict(row._mapping) for row in found]
        for row in rows:
            files, row["failed"] = json.loads(row["files"]), json.loads(row["failed"])
            # Older releases stored a list of names; they read this object as one.
            row["outcomes"] = {name: files[name] for name in files if files[name]} if isinstance(files, dict) else {}
            row["files"] = tuple(files)
        return [Ingest(**row) for row in rows]


def _row(ingest: Ingest) -> dict[str, Any]:
    row = {**ingest.model_dump(exclude={"outcomes", "done"}), "owner": ingest.owner}
    files = {name: ingest.outcomes.get(name, "") for name in ingest.files}
    return {**row, "files": json.dumps(files), "failed": json.dumps(row["failed"])}
