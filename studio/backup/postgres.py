"""Postgres' part of a backup: the statements that create sleuth's tables, and their rows as `COPY` writes them.

All tables are copied in one repeatable-read transaction, and restored in one transaction. Only the tables of sleuth and
of LangGraph's checkpointer are touched. All functions block: call them in a thread.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, Table, inspect, text
from sqlalchemy.schema import CreateIndex, CreateTable

from sleuth.studio.backup.archive import POSTGRES, ArchiveWriter
from sleuth.studio.backup.contents import describe
from sleuth.tools.errors import StoreError
from sleuth.tools.settings import Settings
from sleuth.tools.storage import catalogue_url, is_database_error, open_engine

SCHEMA = f"{POSTGRES}/schema.json"

_CHECKPOINTS = ("checkpoint", "checkpoints")
"""First words of the names of LangGraph's tables."""

_DERIVED = ("sleuth_snapshot", "sleuth_vectors")
"""Beginnings of the names of tables that are not part of a backup: they are made again."""

_SEQUENCES = (
    "SELECT sequencename, last_value FROM pg_sequences "
    "WHERE schemaname = current_schema() AND sequencename LIKE 'sleuth%'"
)
_BLOCK = 1 << 20


def dump(settings: Settings, writer: ArchiveWriter, counts: dict[str, int], schemas: dict[str, int]) -> None:
    """Write all tables as of one moment, and add their numbers of rows and schema versions."""
    with _transaction(settings, isolation_level="REPEATABLE READ", postgresql_readonly=True) as connection:
        metadata = MetaData()
        metadata.reflect(connection, only=[name for name in _tables(connection) if not name.startswith(_DERIVED)])
        tables = metadata.sorted_tables
        describe(metadata.tables, lambda query: connection.scalar(text(query)), counts, schemas)
        schema = {
            "sequences": _sequences(connection),
            "statements": [each for table in tables for each in _statements(table, connection)],
            "tables": [table.name for table in tables],
        }
        with writer.member(SCHEMA) as out:
            out.write(json.dumps(schema, indent=1).encode())
        for table in tables:
            with writer.member(_member(table.name)) as out, _copy(connection, table.name, "TO STDOUT") as rows:
                for block in rows:
                    out.write(bytes(block))


def load(settings: Settings, folder: Path) -> None:
    """Replace all tables by those of an extracted archive, in one transaction: a kill leaves them as they were."""
    schema = json.loads((folder / SCHEMA).read_bytes())
    with _transaction(settings, sleuth_write=True) as connection:
        for name in _tables(connection):
            connection.exec_driver_sql(f"DROP TABLE {_quoted(connection, name)} CASCADE")
        for name in _sequences(connection):
            connection.exec_driver_sql(f"DROP SEQUENCE {_quoted(connection, name)}")
        for name, value in schema["sequences"].items():
            connection.exec_driver_sql(f"CREATE SEQUENCE {_quoted(connection, name)}")
            if value is not None:
                connection.execute(text("SELECT setval(:name, :value)"), {"name": name, "value": value})
        for statement in schema["statements"]:
            connection.exec_driver_sql(statement)
        for name in schema["tables"]:
            with (folder / _member(name)).open("rb") as source, _copy(connection, name, "FROM STDIN") as rows:
                while block := source.read(_BLOCK):
                    rows.write(block)


def has_rows(settings: Settings) -> bool:
    """Return whether the database has documents or runs."""
    with _transaction(settings) as connection:
        present = {"sleuth_documents", "sleuth_threads"} & set(_tables(connection))
        return any(connection.scalar(text(f"SELECT EXISTS (SELECT FROM {name})")) for name in present)  # noqa: S608


def _tables(connection: Connection) -> list[str]:
    """Return the names of the tables of sleuth and of LangGraph's checkpointer."""
    names = inspect(connection).get_table_names()
    return [name for name in names if name.startswith("sleuth_") or name.partition("_")[0] in _CHECKPOINTS]


def _sequences(connection: Connection) -> dict[str, int | None]:
    """Return the last values of sleuth's sequences; None if one was never used."""
    return {row.sequencename: row.last_value for row in connection.execute(text(_SEQUENCES))}


def _statements(table: Table, connection: Connection) -> Iterator[str]:
    for column in table.columns:
        if column.server_default is not None:  # its sequence is created before; SERIAL would make another one
            column.autoincrement = False
    yield str(CreateTable(table).compile(dialect=connection.dialect))
    for index in sorted(table.indexes, key=lambda each: str(each.name)):
        yield str(CreateIndex(index).compile(dialect=connection.dialect))


def _member(table: str) -> str:
    return f"{POSTGRES}/{table}.copy"


@contextmanager
def _copy(connection: Connection, table: str, direction: str) -> Iterator[Any]:
    driver: Any = connection.connection
    with driver.cursor() as cursor, cursor.copy(f"COPY {_quoted(connection, table)} {direction}") as rows:
        yield rows


def _quoted(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote(name)


@contextmanager
def _transaction(settings: Settings, **options: Any) -> Iterator[Connection]:  # noqa: ANN401 - of the connection
    engine = open_engine(catalogue_url(settings.home, settings.database_url))
    try:
        with engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection
    except Exception as error:
        if not is_database_error(error):
            raise
        reason = " ".join(str(getattr(error, "orig", error)).split())
        raise StoreError(f"Postgres: {reason}. Nothing was changed. Check SLEUTH_DATABASE_URL.") from error
    finally:
        engine.dispose()
