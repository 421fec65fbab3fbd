"""Releases still to come: each changes the catalogue's tables in several statements."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL, inspect, select

from sleuth.tools.storage import schema
from sleuth.tools.storage.database import open_engine, transaction

_PRESENT, _MIGRATIONS = schema.SCHEMA_VERSION, dict(schema.MIGRATIONS)
_ON_THE_WAY = ("sleuth_moved", "sleuth_numbers")
"""Tables that are there only while a store is migrated."""


def become(release: int) -> None:
    """From here on this process opens catalogues as that release does; 0 is the present one."""
    schema.SCHEMA_VERSION = _PRESENT + release
    schema.MIGRATIONS = _MIGRATIONS | {_PRESENT + n: _steps(n) for n in range(release)}


@contextmanager
def being(release: int) -> Iterator[None]:
    """The same, for a while."""
    become(release)
    try:
        yield
    finally:
        become(0)


def release_of(url: str | URL) -> int:
    """The release that a catalogue is of; fails where it is only half of it."""
    engine = open_engine(url)
    with transaction(engine, write=True) as connection:  # waits until the database has rolled back what was killed
        found = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == "schema_version"))
        columns = {column["name"] for column in inspect(connection).get_columns("sleuth_documents")}
        tables = inspect(connection).get_table_names()
    engine.dispose()
    release = int(found or 0) - _PRESENT
    assert {name for name in columns if name.startswith("letters_")} == {f"letters_{n}" for n in range(release)}
    assert not set(tables) & set(_ON_THE_WAY)
    return release


def _steps(release: int) -> tuple[str, ...]:
    """Moves all passages out and in again, and adds a column; the numbers are for it to take a while."""
    return (
        f"ALTER TABLE sleuth_documents ADD COLUMN letters_{release} INTEGER",
        "CREATE TABLE sleuth_moved AS SELECT * FROM sleuth_passages",
        "DELETE FROM sleuth_passages",
        "CREATE TABLE sleuth_numbers AS WITH RECURSIVE numbers (n) AS "
        "(SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200000) SELECT n FROM numbers",
        "INSERT INTO sleuth_passages SELECT * FROM sleuth_moved",
        "DROP TABLE sleuth_numbers",
        f"UPDATE sleuth_documents SET letters_{release} = length(text)",
        "DROP TABLE sleuth_moved",
    )
