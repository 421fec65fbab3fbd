"""Archive of the texts of runs, stored once by content hash: passages as retrieved, prompts as sent.

The state of a run names them by hash, so its history stays readable after the documents have changed.

Each prune starts a new epoch and deletes only texts that were last stored in an earlier one. Runs that store texts
during the prune, also on other machines, lose nothing.
"""

import zlib
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TypeAlias

from sqlalchemy import (
    Column,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
)
from sqlalchemy.engine import Engine

from sleuth.tools.errors import UnknownName
from sleuth.tools.storage.database import batches, in_thread, make_tables
from sleuth.tools.types import content_hash

metadata = MetaData()
texts = Table(
    "sleuth_texts",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("epoch", Integer, nullable=False),
)
epochs = Table("sleuth_prune_epoch", metadata, Column("epoch", Integer, nullable=False))
"""One row with the present prune epoch; empty before the first prune."""

_NOW = select(func.coalesce(func.max(epochs.c.epoch), 0)).scalar_subquery()


def texts_of(hashes: Iterable[str], archived: Mapping[str, str]) -> list[str]:
    """Return texts in order; raise UnknownName for a hash that only a fork can have put into the state."""
    names = list(hashes)
    if missing := next((name for name in names if name not in archived), None):
        hint = "A state names its passages and prompts as its run found them: take references from its checkpoints."
        raise UnknownName("archived text", missing, [], hint)
    return [archived[name] for name in names]


class MemoryArchive:
    """An archive for tests and for graphs that run without a store."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    async def keep(self, new: Iterable[str]) -> list[str]:
        """Store each text; return their content hashes in order."""
        named = [(content_hash(text), text) for text in new]
        self.texts.update(named)
        return [name for name, _ in named]

    async def find(self, hashes: Iterable[str]) -> dict[str, str]:
        """Return the texts by their hashes, without unknown ones."""
        return {name: self.texts[name] for name in hashes if name in self.texts}

    async def load(self, hashes: Iterable[str]) -> list[str]:
        """Return the texts of these hashes in order; raise UnknownName for an unknown one."""
        names = list(hashes)
        return texts_of(names, await self.find(names))


class SqlArchive:
    """An archive in the database that holds the checkpoints; bodies are compressed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        make_tables(engine, metadata)

    @in_thread
    def keep(self, new: Iterable[str]) -> list[str]:
        """Store each text; return their content hashes in order."""
        named = [(content_hash(text), text) for text in new]
        dialect = import_module(f"sqlalchemy.dialects.{self.engine.dialect.name}")
        rows = [
            {"name": name, "packed": zlib.compress(text.encode("utf-8", "surrogatepass"))}
            for name, text in sorted(dict(named).items())  # in one order, so that two writers never deadlock
        ]
        insertion = dialect.insert(texts).values(hash=bindparam("name"), body=bindparam("packed"), epoch=_NOW)
        later = {"epoch": insertion.excluded.epoch}
        upsert = insertion.on_conflict_do_update(
            index_elements=["hash"], set_=later, where=texts.c.epoch < insertion.excluded.epoch
        )
        if rows:
            with self.engine.begin() as connection:
                connection.execute(upsert, rows)
        return [name for name, _ in named]

    @in_thread
    def find(self, hashes: Iterable[str]) -> dict[str, str]:
        """Return the texts by their hashes, without unknown ones."""
        bodies: dict[str, str] = {}
        with self.engine.connect() as connection:
            for part in batches(sorted(set(hashes))):
                rows = connection.execute(select(texts).where(texts.c.hash.in_(part)))
                bodies |= {row.hash: zlib.decompress(row.body).decode("utf-8", "surrogatepass") for row in rows}
        return bodies

    async def load(self, hashes: Iterable[str]) -> list[str]:
        """Return the texts of these hashes in order; raise UnknownName for an unknown one."""
        names = list(hashes)
        return texts_of(names, await self.find(names))

    @in_thread
    def start_prune_epoch(self) -> int:
        """Start the next prune epoch and return its number: texts stored from here on, also again, belong to it."""
        with self.engine.execution_options(sleuth_write=True).begin() as connection:
            epoch = int(connection.scalar(select(_NOW)) or 0) + 1
            connection.execute(delete(epochs))
            connection.execute(insert(epochs).values(epoch=epoch))
        return epoch

    @in_thread
    def delete_all_but(self, used: set[str], *, before: int) -> int:
        """Delete the texts of earlier epochs than `before` whose hashes are not in `used`; return their number."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(texts.c.hash).where(texts.c.epoch < before))
            others = sorted(name for (name,) in rows if name not in used)
        deleted = 0
        for part in batches(others):
            unused = select(texts.c.hash).where(texts.c.hash.in_(part), texts.c.epoch < before)  # not again since
            with self.engine.execution_options(sleuth_write=True).begin() as connection:
                gone = [name for (name,) in connection.execute(unused.order_by(texts.c.hash).with_for_update())]
                connection.execute(delete(texts).where(texts.c.hash.in_(gone)))
            deleted += len(gone)
        return deleted


Archive: TypeAlias = MemoryArchive | SqlArchive
"""An archive of texts."""
