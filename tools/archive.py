"""Texts that a run has seen, kept once by content hash: passages as they were, prompts as they were sent.

A run's state names them by hash; its history stays readable after the documents have changed.
"""

import asyncio
import zlib
from collections.abc import Iterable, Mapping
from typing import Protocol

from sqlalchemy import Column, LargeBinary, MetaData, String, Table, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Engine

from sleuth.tools.documents import content_hash
from sleuth.tools.errors import UnknownName

BATCH = 500

metadata = MetaData()
texts = Table(
    "sleuth_texts",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)


class Archive(Protocol):
    """Keeps texts and gives them back."""

    async def keep(self, new: Iterable[str]) -> list[str]:
        """Keeps each text; returns their content hashes in order."""
        ...

    async def load(self, hashes: Iterable[str]) -> list[str]:
        """The texts of these hashes in order; raises UnknownName for one that was never kept."""
        ...


def _texts(hashes: Iterable[str], kept: Mapping[str, str]) -> list[str]:
    """Raises UnknownName: a fork has put into the state what is none of its texts."""
    wanted = list(hashes)
    if missing := next((name for name in wanted if name not in kept), None):
        hint = "A state names its passages and prompts as its run found them: take references from its checkpoints."
        raise UnknownName("archived text", missing, [], hint)
    return [kept[name] for name in wanted]


class MemoryArchive:
    """An archive for tests and for graphs that run without a store."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    async def keep(self, new: Iterable[str]) -> list[str]:
        """Keeps each text; returns their content hashes in order."""
        named = [(content_hash(text), text) for text in new]
        self.texts.update(named)
        return [name for name, _ in named]

    async def load(self, hashes: Iterable[str]) -> list[str]:
        """The texts of these hashes in order; raises UnknownName for one that was never kept."""
        return _texts(hashes, self.texts)


class SqlArchive:
    """An archive in the database that holds the checkpoints; bodies are compressed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        metadata.create_all(engine)

    async def keep(self, new: Iterable[str]) -> list[str]:
        """Keeps each text; returns their content hashes in order."""
        named = [(content_hash(text), text) for text in new]
        if named:
            await asyncio.to_thread(self._insert, dict(named))
        return [name for name, _ in named]

    async def load(self, hashes: Iterable[str]) -> list[str]:
        """The texts of these hashes in order; raises UnknownName for one that was never kept."""
        wanted = list(hashes)
        return _texts(wanted, await asyncio.to_thread(self._select, sorted(set(wanted))))

    async def drop_all_but(self, kept: set[str]) -> int:
        """Removes every text whose hash is not in `kept`; returns how many went."""
        return await asyncio.to_thread(self._delete_others, kept)

    def _insert(self, bodies: dict[str, str]) -> None:
        dialect = postgresql if self.engine.dialect.name == "postgresql" else sqlite
        rows = [
            {"hash": name, "body": zlib.compress(text.encode("utf-8", "surrogatepass"))}
            for name, text in bodies.items()
        ]
        with self.engine.begin() as connection:
            connection.execute(dialect.insert(texts).on_conflict_do_nothing(), rows)

    def _select(self, hashes: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        with self.engine.connect() as connection:
            for at in range(0, len(hashes), BATCH):
                rows = connection.execute(select(texts).where(texts.c.hash.in_(hashes[at : at + BATCH])))
                found |= {row.hash: zlib.decompress(row.body).decode("utf-8", "surrogatepass") for row in rows}
        return found

    def _delete_others(self, kept: set[str]) -> int:
        with self.engine.begin() as connection:
            gone = [name for (name,) in connection.execute(select(texts.c.hash)) if name not in kept]
            for at in range(0, len(gone), BATCH):
                connection.execute(delete(texts).where(texts.c.hash.in_(gone[at : at + BATCH])))
        return len(gone)
