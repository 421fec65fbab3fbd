"""Tables of the store of runs."""

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    TableClause,
    Text,
    column,
    func,
    insert,
    select,
    table,
)
from sqlalchemy.engine import Engine

from sleuth.tools.errors import StoreTooNew

LONGEST_NAME = 100

STORE_VERSION = 1

CHECKPOINT_TABLES = {
    "sqlite": ("checkpoints", "writes"),
    "postgresql": ("checkpoints", "checkpoint_writes", "checkpoint_blobs"),
}

metadata = MetaData()
version = Table("sleuth_runs_version", metadata, Column("version", Integer, nullable=False))
threads = Table(
    "sleuth_threads",
    metadata,
    Column("id", String(LONGEST_NAME), primary_key=True),
    Column("owner", String(100), nullable=False),
    Column("method", String(40), nullable=False),
    Column("question", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("problem", Text, nullable=False),
    Column("parent", String(LONGEST_NAME), nullable=False),
    Column("parent_checkpoint", String(100), nullable=False),
    Column("subrun", Integer, nullable=False),
    # What clients store with a run, as JSON; `options` has what the run itself needs.
    Column("feedback", Text, nullable=False),
    Column("client_metadata", Text, nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("updated_at", String(40), nullable=False),
    Column("outcome", String(20), nullable=False),
    # Null until there is an answer.
    Column("verdict", String(20)),
    Column("answer", Text),
    Column("weak", Boolean),
    Column("calls", Integer),
    Column("tokens", Integer),
    Column("seconds", Float),
    # The latest of many runs are listed and filtered, and the sub-runs of one are found, without reading all of them.
    Index("sleuth_threads_latest", "owner", "updated_at", "id"),
    Index("sleuth_threads_outcome", "owner", "outcome", "updated_at", "id"),
    Index("sleuth_threads_method", "owner", "method", "updated_at", "id"),
    Index("sleuth_threads_parent", "owner", "parent"),
)


events = Table(
    "sleuth_serve_events",
    metadata,
    Column("thread", String(LONGEST_NAME), primary_key=True),
    Column("id", Integer, primary_key=True),
    Column("name", String(20), nullable=False),
    Column("key", String(200), nullable=False),
    Column("data", Text, nullable=False),
)
"""Events of runs that a server has published; they are deleted with their run."""


def prepare_tables(engine: Engine) -> None:
    """Create missing tables; blocks.

    Raises:
        StoreTooNew: a newer release wrote the runs.
    """
    with engine.execution_options(sleuth_write=True).begin() as connection:
        metadata.create_all(connection)
        stored = connection.scalar(select(func.max(version.c.version)))
        if stored is None:
            connection.execute(insert(version).values(version=STORE_VERSION))
        elif stored > STORE_VERSION:
            raise StoreTooNew(
                f"The runs were written by a newer release (version {stored}, this one reads up to {STORE_VERSION}): "
                "upgrade sleuth, or set SLEUTH_HOME to another folder."
            )


def checkpoint_tables(connection: Connection) -> list[TableClause]:
    """Return the tables in which LangGraph stores a thread; rows of the first two belong to a checkpoint."""
    names = CHECKPOINT_TABLES[connection.dialect.name]
    return [table(name, column("thread_id"), column("checkpoint_id")) for name in names]
