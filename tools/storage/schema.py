"""Tables of the catalogue, the same for SQLite and Postgres, and their migrations."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    TypeDecorator,
    delete,
    insert,
    select,
    text,
    update,
)

from sleuth.tools.errors import StoreTooNew

T = TypeVar("T")

SCHEMA_VERSION = 1

MIGRATIONS: dict[int, tuple[str, ...]] = {}
"""Statements of the migration from version n to n + 1, by n."""


class TagsType(TypeDecorator[tuple[str, ...]]):
    """Tags as text, one per line."""

    impl, cache_ok = Text, True

    def process_bind_param(self, value: Sequence[str] | None, dialect: object) -> str:
        """Return the cell of tags."""
        return "\n".join(value or ())

    def process_result_value(self, value: str | None, dialect: object) -> tuple[str, ...]:
        """Return the tags in a cell."""
        return tuple(filter(None, (value or "").split("\n")))


class MetaType(TypeDecorator[Mapping[str, str]]):
    """Own fields of a document, as JSON."""

    impl, cache_ok = Text, True

    def process_bind_param(self, value: Mapping[str, str] | None, dialect: object) -> str:
        """Return the cell of fields."""
        return json.dumps(dict(value or {}), ensure_ascii=False)

    def process_result_value(self, value: str | None, dialect: object) -> Mapping[str, str]:
        """Return the fields in a cell."""
        return json.loads(value or "{}")  # type: ignore[no-any-return]


def _keys(*names: str) -> list[Column[str]]:
    return [Column(name, String, primary_key=True) for name in names]


def _of_document() -> ForeignKeyConstraint:
    """Return the constraint of a table whose rows are deleted with their document."""
    columns = [f"sleuth_documents.{name}" for name in ("owner", "collection", "id")]
    return ForeignKeyConstraint(["owner", "collection", "document_id"], columns, ondelete="CASCADE")


# The names have a prefix because the application may use the same Postgres database.
metadata = MetaData()

meta = Table(
    "sleuth_meta",
    metadata,
    Column("key", String, primary_key=True),
    Column("value", String, nullable=False),
)

collections = Table(
    "sleuth_collections",
    metadata,
    *_keys("owner", "name"),
    Column("embedder", String, nullable=False),
)

documents = Table(
    "sleuth_documents",
    metadata,
    *_keys("owner", "collection", "id"),
    Column("title", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("media_type", String, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("added_at", String, nullable=False),
    Column("author", Text, nullable=False),
    Column("date", Text, nullable=False),
    Column("language", Text, nullable=False),
    Column("tags", TagsType, nullable=False),
    Column("meta", MetaType, nullable=False),
    # Those of `meta` that were given at an ingest; a later ingest keeps them.
    Column("given_meta", MetaType, nullable=False),
    Index("sleuth_documents_source", "owner", "collection", "source"),
    Index("sleuth_documents_content", "owner", "collection", "content_hash"),
)

passages = Table(
    "sleuth_passages",
    metadata,
    *_keys("owner", "collection", "id"),
    Column("document_id", String, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("location", Text, nullable=False),
    Column("places", Text, nullable=False),
    _of_document(),
    Index("sleuth_passages_document", "owner", "collection", "document_id"),
)

# The SHA-256 of the file of a document whose copy is kept; `tools/collection` has the copies.
originals = Table(
    "sleuth_originals",
    metadata,
    *_keys("owner", "collection", "document_id"),
    Column("hash", String, nullable=False),
    _of_document(),
)

# Triples by model; an empty list is a result too. Passages with equal titles and texts share a row.
triples = Table(
    "sleuth_triples",
    metadata,
    *_keys("owner", "collection", "content_hash", "model", "version"),
    Column("triples", Text, nullable=False),
)

journal = Table(
    "sleuth_journal",
    metadata,
    # SQLite numbers rows only in an INTEGER column.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("owner", String, nullable=False),
    Column("collection", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("document_id", String, nullable=False),
    Column("passage_ids", Text, nullable=False),
    Column("at", String, nullable=False),
    Index("sleuth_journal_collection", "owner", "collection", "seq"),
    sqlite_autoincrement=True,
)


def rows_of(table: Table, place: Mapping[str, str]) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the conditions for the rows of one collection; `place` has its owner and its name as `collection`."""
    return table.c.owner == place["owner"], table.c.collection == place["collection"]


def delete_orphaned_triples(connection: Connection, place: Mapping[str, str], fingerprints: Collection[str]) -> None:
    """Delete the triples of contents that no passage of the collection has."""
    query = select(triples.c.content_hash).where(*rows_with(triples, place, fingerprints))
    if read := set(connection.scalars(query)):
        gone = read - present(connection, place, read)
        connection.execute(delete(triples).where(*rows_with(triples, place, gone)))


def present(connection: Connection, place: Mapping[str, str], fingerprints: Collection[str]) -> set[str]:
    """Return those of the fingerprints that a passage of the collection has."""
    return set(connection.scalars(select(passages.c.content_hash).where(*rows_with(passages, place, fingerprints))))


def rows_with(table: Table, place: Mapping[str, str], fingerprints: Collection[str]) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for the rows of one collection with these fingerprints."""
    return (*rows_of(table, place), table.c.content_hash.in_(fingerprints))


def parse_row(kind: type[T], row: Row[Any]) -> T:
    """Return a row as a dataclass with fields named as its columns."""
    return kind(**{each.name: row._mapping[each.name] for each in fields(kind)})  # type: ignore[arg-type]


def prepare_tables(connection: Connection) -> None:
    """Create missing tables and migrate an older store; raise StoreTooNew for one of a newer release."""
    metadata.create_all(connection)
    stored = connection.scalar(select(meta.c.value).where(meta.c.key == "schema_version"))
    if stored is None:
        stored = SCHEMA_VERSION
        connection.execute(insert(meta).values(key="schema_version", value=str(stored)))
    if int(stored) > SCHEMA_VERSION:
        raise StoreTooNew(
            f"The catalogue was written by a newer sleuth (schema {stored}, this one reads up to {SCHEMA_VERSION}). "
            "Upgrade sleuth, or set SLEUTH_HOME to another folder."
        )
    for version in range(int(stored), SCHEMA_VERSION):
        for statement in MIGRATIONS[version]:
            connection.execute(text(statement))
        connection.execute(update(meta).where(meta.c.key == "schema_version").values(value=str(version + 1)))
