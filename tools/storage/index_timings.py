"""How long each index of a collection has taken to become what it is, kept in the catalogue's database."""

from sqlalchemy import Engine, delete, select

from sleuth.tools.storage.database import transaction
from sleuth.tools.storage.rows import number_in
from sleuth.tools.storage.schema import increase, meta


class Timings:
    """Seconds of indexing for one owner's collection, by the name of the index; all methods block."""

    def __init__(self, engine: Engine, *, owner: str, collection: str) -> None:
        self._engine = engine
        self._prefix = f"indexing:{owner}:{collection}:"

    def add(self, index: str, seconds: float) -> None:
        """Adds the time that an index took for some passages."""
        with transaction(self._engine, write=True) as connection:
            increase(connection, self._prefix + index, round(1000 * seconds))

    def forget(self, index: str) -> None:
        """For an index that is built anew."""
        with transaction(self._engine, write=True) as connection:
            connection.execute(delete(meta).where(meta.c.key == self._prefix + index))

    def seconds(self) -> dict[str, float]:
        """What was added up since; indexes that were built before this was kept are missing."""
        with transaction(self._engine) as connection:
            rows = connection.execute(select(meta).where(meta.c.key.startswith(self._prefix, autoescape=True))).all()
        return {row.key.removeprefix(self._prefix): number_in(row.value) / 1000 for row in rows}
