"""Indexing time of each index of a collection, stored in the catalogue."""

from sqlalchemy import Engine, delete, select

from sleuth.tools.storage.database import transaction
from sleuth.tools.storage.rows import parse_number
from sleuth.tools.storage.schema import increment, meta


class IndexTimings:
    """Seconds of indexing for one owner's collection, by the name of the index; all methods block."""

    def __init__(self, engine: Engine, *, owner: str, collection: str) -> None:
        self._engine = engine
        self._prefix = f"indexing:{owner}:{collection}:"

    def add(self, index: str, seconds: float) -> None:
        """Add the time of indexing some passages."""
        with transaction(self._engine, write=True) as connection:
            increment(connection, self._prefix + index, round(1000 * seconds))

    def forget(self, index: str) -> None:
        """Delete the time of an index that is rebuilt."""
        with transaction(self._engine, write=True) as connection:
            connection.execute(delete(meta).where(meta.c.key == self._prefix + index))

    def seconds(self) -> dict[str, float]:
        """Return the sums by index; indexes of older releases are missing."""
        with transaction(self._engine) as connection:
            rows = connection.execute(select(meta).where(meta.c.key.startswith(self._prefix, autoescape=True))).all()
        return {row.key.removeprefix(self._prefix): parse_number(row.value) / 1000 for row in rows}
