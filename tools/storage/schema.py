"""The catalogue's tables, the same for SQLite and Postgres, and how an older store becomes a current one."""

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    insert,
    select,
    text,
    update,
)

from sleuth.tools.errors import StoreDamaged, StoreTooNew
from sleuth.tools.storage.rows import number_in

SCHEMA_VERSION = 1

# Statements that lead from version n to n + 1, by n.
MIGRATIONS: dict[int, tuple[str, ...]] = {}

# The names carry a prefix because a Postgres database may be shared with the application around.
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
    Column("owner", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("embedder", String, nullable=False),
    Column("dimension", Integer),
)

documents = Table(
    "sleuth_documents",
    metadata,
    Column("owner", String, primary_key=True),
    Column("collection", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("title", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("media_type", String, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("added_at", String, nullable=False),
    Index("sleuth_documents_source", "owner", "collection", "source"),
)

passages = Table(
    "sleuth_passages",
    metadata,
    Column("owner", String, primary_key=True),
    Column("collection", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("document_id", String, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("content_hash", String, nullable=False),
    ForeignKeyConstraint(
        ["owner", "collection", "document_id"],
        ["sleuth_documents.owner", "sleuth_documents.collection", "sleuth_documents.id"],
        ondelete="CASCADE",
    ),
    Index("sleuth_passages_document", "owner", "collection", "document_id"),
)

# What models found in passages; an empty list is a finding too. Passages with equal titles and texts share a row.
triples = Table(
    "sleuth_triples",
    metadata,
    Column("owner", String, primary_key=True),
    Column("collection", String, primary_key=True),
    Column("content_hash", String, primary_key=True),
    Column("model", String, primary_key=True),
    Column("version", String, primary_key=True),
    Column("triples", Text, nullable=False),
)

journal = Table(
    "sleuth_journal",
    metadata,
    # SQLite numbers rows by itself only in an INTEGER column.
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


def prepare(connection: Connection) -> None:
    """Creates tables that are missing and migrates an older store; raises StoreTooNew for one of a newer release."""
    metadata.create_all(connection)
    found = connection.scalar(select(meta.c.value).where(meta.c.key == "schema_version"))
    if found is None:
        connection.execute(insert(meta).values(key="schema_version", value=str(SCHEMA_VERSION)))
    elif not str(found).isdecimal():
        raise StoreDamaged(
            f"The catalogue's schema version is {found!r:.80}, not a number.",
            advice="Put a backup of the catalogue in place, or move it away and ingest the documents again.",
        )
    elif int(found) != SCHEMA_VERSION:
        _migrate(connection, int(found))


def increase(connection: Connection, key: str, by: int) -> None:
    """Adds to a number among the facts about the store; it begins with 0."""
    before = connection.scalar(select(meta.c.value).where(meta.c.key == key))
    if before is None:
        connection.execute(insert(meta).values(key=key, value=str(by)))
    else:
        connection.execute(update(meta).where(meta.c.key == key).values(value=str(number_in(before) + by)))


def _migrate(connection: Connection, found: int) -> None:
    if found > SCHEMA_VERSION:
        raise StoreTooNew(
            f"The catalogue was written by a newer sleuth (schema {found}, this release knows {SCHEMA_VERSION}). "
            "Upgrade sleuth, or point SLEUTH_HOME elsewhere."
        )
    for version in range(found, SCHEMA_VERSION):
        for statement in MIGRATIONS[version]:
            connection.execute(text(statement))
    connection.execute(update(meta).where(meta.c.key == "schema_version").values(value=str(SCHEMA_VERSION)))
