"""What was sent to a server: files below SLEUTH_HOME, and a row each in the store that says how far they are read.

Files wait in a folder of their upload's own. When it is their turn they move to their owner's folder, so that a file
that is sent again under the same name takes the place of the one before; afterwards the catalogue has their text.
Several servers may share the rows, and then each has the uploads whose files lie in its SLEUTH_HOME.
"""

import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Literal

from sqlalchemy import Column, Integer, MetaData, String, Table, Text, insert, select, update
from sqlalchemy.engine import Engine

from sleuth.tools.errors import StoreError
from sleuth.tools.storage import make_tables, transaction

Status = Literal["waiting", "reading", "stopping", "stopped", "done", "failed"]
ENDS: tuple[Status, ...] = ("stopped", "done", "failed")

_OWNERS = "of-"

HOUR = 3600.0
"""Seconds after which a file that belongs to no upload is nobody's: longer than any takes to be written down."""

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

_GOING_ON = ingests.c.status.not_in(ENDS)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A file that could not be read; where `source` is empty, why none can be."""

    source: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class Ingest:
    """One upload, and how far it has been read."""

    id: str
    owner: str
    files: tuple[str, ...]
    status: Status = "waiting"
    read: int = 0
    total: int = 0
    failed: tuple[Failure, ...] = ()
    at: str = ""

    @property
    def done(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in ENDS

    def to_json(self) -> dict[str, Any]:
        """As its owner sees it."""
        return {**asdict(self), "done": self.done}


class Uploads:
    """Keeps uploads and their files; every method blocks, and raises StoreError where the database complains."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        """Makes the table where it is missing."""
        self._engine = engine
        self._folder = folder
        make_tables(engine, metadata)

    def keep(self, ingest: Ingest, files: Mapping[str, BinaryIO]) -> None:
        """Keeps an upload's files, and then writes it down; raises StoreError where there is no room for them."""
        folder = self._folder / ingest.id
        try:
            folder.mkdir(parents=True)
            for name, file in files.items():
                with (folder / name).open("wb") as out:
                    shutil.copyfileobj(file, out)
            with transaction(self._engine, write=True) as connection:
                connection.execute(insert(ingests).values(_row(ingest)))
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            told = "The files cannot be kept, and none was taken: "
            raise StoreError(f"{told}{error.strerror}. Send them again once the server has room for them.") from error
        except StoreError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def find(self, id: str) -> Ingest | None:
        """An upload, whoever's it is."""
        found = self._select(ingests.c.id == id)
        return found[0] if found else None

    def left(self) -> list[Ingest]:
        """Those whose files lie here and that have not come to their end, in the order in which they were sent."""
        return [each for each in self._select(_GOING_ON) if (self._folder / each.id).is_dir()]

    def mark_stopping(self, id: str) -> None:
        """Writes down that the next start must not read on; an end that was written meanwhile stays."""
        with transaction(self._engine, write=True) as connection:
            connection.execute(update(ingests).where(ingests.c.id == id, _GOING_ON).values(status="stopping"))

    def finish(self, ingest: Ingest, *, placed: bool) -> None:
        """Writes an upload's end down, and clears its files away."""
        with transaction(self._engine, write=True) as connection:
            connection.execute(update(ingests).where(ingests.c.id == ingest.id).values(_row(ingest)))
        shutil.rmtree(self._folder / ingest.id, ignore_errors=True)
        for path in self._paths(ingest) if placed else ():  # until then a file of that name there is another upload's
            path.unlink(missing_ok=True)

    def folder_of(self, owner: str) -> Path:
        """Where an owner's files are while they are read; a document's source is a path in it."""
        return self._folder / f"{_OWNERS}{sha256(owner.encode()).hexdigest()[:16]}"

    def place(self, ingest: Ingest) -> list[Path]:
        """Moves files where they are read; after a kill some of them are there already."""
        self.folder_of(ingest.owner).mkdir(parents=True, exist_ok=True)
        for path in self._paths(ingest):
            if (kept := self._folder / ingest.id / path.name).exists():
                kept.replace(path)
        return self._paths(ingest)

    def sweep(self) -> None:
        """Clears away what a kill left: files that were not written down yet, or not any more."""
        going_on = self._select(_GOING_ON)
        wanted = {path for each in going_on for path in (self._folder / each.id, *self._paths(each))}
        folders = [path for path in self._folder.glob("*") if not path.name.startswith(_OWNERS)]
        for path in [*folders, *self._folder.glob(f"{_OWNERS}*/*")]:
            with suppress(FileNotFoundError):  # another server clears up too
                if path in wanted or time.time() - path.stat().st_mtime < HOUR:
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
            row["failed"] = tuple(Failure(**each) for each in json.loads(row["failed"]))
            row["files"] = tuple(json.loads(row["files"]))
        return [Ingest(**row) for row in rows]


def _row(ingest: Ingest) -> dict[str, Any]:
    row = asdict(ingest)
    return {**row, "files": json.dumps(row["files"]), "failed": json.dumps(row["failed"])}
