"""Snapshots of derived indexes in Postgres: one server builds an index and stores it, the others fetch it.

A snapshot is a compressed archive of the index's files, and the last change of the journal in it. It is replaced in one
transaction, and used only if its checksum is right and the journal has that change. Without Postgres there are none.
All functions block: call them in a thread.
"""

import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
)
from sqlalchemy.engine import Engine

from sleuth.tools.errors import StoreError
from sleuth.tools.search import IndexName, KeywordIndex
from sleuth.tools.search.entity_graph import GraphIndex
from sleuth.tools.storage import make_tables, transaction
from sleuth.tools.storage.schema import journal, rows_of

_CHUNK = 4 << 20
_INDEX = "index"

metadata = MetaData()
snapshots = Table(
    "sleuth_snapshots",
    metadata,
    Column("owner", String, primary_key=True),
    Column("collection", String, primary_key=True),
    Column("index", String, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("change", Text, nullable=False),
    Column("passages", Integer, nullable=False),
    Column("sha256", String(64), nullable=False),
)
chunks = Table(
    "sleuth_snapshot_chunks",
    metadata,
    Column("owner", String, primary_key=True),
    Column("collection", String, primary_key=True),
    Column("index", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A stored index: the last change in it, its passages, and the checksum of its archive."""

    index: IndexName
    seq: int
    passages: int
    sha256: str


class Snapshots:
    """The snapshots of one collection, one of each index."""

    def __init__(self, engine: Engine, place: Mapping[str, str]) -> None:
        """Create the tables in Postgres if they are missing; `place` has the owner and the collection."""
        self._engine = engine
        self._place = dict(place)
        self.is_available = engine.dialect.name == "postgresql"
        if self.is_available:
            make_tables(engine, metadata)

    def find(self, name: IndexName, index: KeywordIndex | GraphIndex) -> Snapshot | None:
        """Return the snapshot of an index in its present version; None if there is none of this journal."""
        if not self.is_available:
            return None
        wanted = select(snapshots).where(*self._rows(snapshots, name), snapshots.c.version == index.version)
        with transaction(self._engine) as connection:
            row = connection.execute(wanted).first()
            if row is None or row.change != self._change(connection, row.seq):
                return None
        return Snapshot(index=name, seq=row.seq, passages=row.passages, sha256=row.sha256)

    def is_far_behind(self, seq: int, snapshot: Snapshot, share: float) -> bool:
        """Return whether at least `share` of all changes of the journal are in a snapshot and came after `seq`."""
        later = select(func.count()).where(*rows_of(journal, self._place), journal.c.seq > seq)
        with transaction(self._engine) as connection:
            changes = connection.scalar(later.where(journal.c.seq <= snapshot.seq)) or 0
            total = connection.scalar(select(func.count()).where(*rows_of(journal, self._place))) or 1
        return bool(changes >= share * total)

    def put(self, name: IndexName, index: KeywordIndex | GraphIndex, folder: Path) -> bool:
        """Store a snapshot of an index in place of the last one; return False if another server is storing one.

        Args:
            name: the name of the index.
            index: the index, which nobody changes meanwhile.
            folder: a folder for temporary files.

        Raises:
            StoreError: the index cannot be read, or the snapshot cannot be written.
        """
        if not self.is_available:
            return False
        with TemporaryDirectory(dir=folder, prefix="snapshot-") as temporary, transaction(self._engine) as connection:
            if not connection.scalar(select(func.pg_try_advisory_xact_lock(self._lock_key(name)))):
                return False
            archive = Path(temporary, "archive")
            index.copy_to(Path(temporary, _INDEX))
            with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
                packed.add(Path(temporary, _INDEX), _INDEX)
            self._remove(connection, name)
            digest, own, seq = sha256(), self._place | {"index": name}, index.applied()
            with archive.open("rb") as opened:
                for number, data in enumerate(iter(lambda: opened.read(_CHUNK), b"")):
                    digest.update(data)
                    connection.execute(insert(chunks).values(**own, number=number, data=data))
            about = {"version": index.version, "passages": index.count(), "sha256": digest.hexdigest()}
            connection.execute(insert(snapshots).values(**own, seq=seq, change=self._change(connection, seq), **about))
        return True

    def fetch(self, snapshot: Snapshot, folder: Path) -> Path:
        """Unpack a snapshot in a folder; return its file or folder.

        Raises:
            StoreError: it cannot be read, or its checksum is wrong. In this case it is removed.
        """
        archive, digest = folder / "archive", sha256()
        wanted = select(chunks.c.data).where(*self._rows(chunks, snapshot.index)).order_by(chunks.c.number)
        with transaction(self._engine) as connection, archive.open("wb") as out:
            for (data,) in connection.execution_options(yield_per=1).execute(wanted):
                digest.update(data)
                out.write(data)
        if digest.hexdigest() != snapshot.sha256:
            wrong = delete(snapshots).where(*self._rows(snapshots, snapshot.index))
            with transaction(self._engine) as connection:  # unless another server has replaced it
                connection.execute(wrong.where(snapshots.c.sha256 == snapshot.sha256))
            raise StoreError("its checksum is wrong.")
        with tarfile.open(archive, "r:gz") as packed:
            packed.extractall(folder, filter="data")
        archive.unlink()
        return folder / _INDEX

    def remove(self, name: IndexName) -> None:
        """Remove the snapshot of an index."""
        if self.is_available:
            with transaction(self._engine) as connection:
                self._remove(connection, name)

    def _remove(self, connection: Connection, name: IndexName) -> None:
        for table in (snapshots, chunks):
            connection.execute(delete(table).where(*self._rows(table, name)))

    def _rows(self, table: Table, name: IndexName) -> list[ColumnElement[bool]]:
        return [*rows_of(table, self._place), table.c.index == name]

    def _change(self, connection: Connection, seq: int) -> str | None:
        """Return a mark of a change: after a restore, the journal may have another one of this number."""
        row = connection.execute(select(journal).where(*rows_of(journal, self._place), journal.c.seq == seq)).first()
        return f"{row.at} {row.kind} {row.document_id}" if row else None

    def _lock_key(self, name: IndexName) -> int:
        text = "\0".join([*self._place.values(), name, "snapshot"])
        return int.from_bytes(sha256(text.encode()).digest()[:8], signed=True)
