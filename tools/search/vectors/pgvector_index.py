"""Vectors in Postgres with the extension pgvector. All methods block: call them in a thread.

Vectors are stored in 16 bits per number. Their index is one of pgvector's neighbor graphs (HNSW).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    Select,
    Table,
    Text,
    any_,
    bindparam,
    cast,
    delete,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from sqlalchemy.schema import CreateTable
from sqlalchemy.types import UserDefinedType

from sleuth.tools.errors import StoreError, UsageError, VectorsReplaced
from sleuth.tools.search.retriever import Scored
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.search.vectors.index import MAX_EXACT, VectorIndex
from sleuth.tools.storage import catalogue_url, make_tables, open_engine

# Vectors that a search keeps on its way through the graph, the most that pgvector allows: fewer miss many of the
# nearest from 100,000 vectors on.
_EFFORT = 1_000
# pgvector's defaults: with Chroma's wider graphs, building takes four times as long and recall is hardly higher.
_NEIGHBORS, _BUILD_EFFORT = 16, 64
_GRAPH = "_numbers"
_NO_TABLE = "42P01"
# SQLSTATEs: no such file, not available, permission denied, no such type.
_NO_EXTENSION = ("58P01", "0A000", "42501", "42704")

_metadata = MetaData()
_about = Table("sleuth_vectors", _metadata, Column("name", Text, primary_key=True), Column("about", JSONB))


class HalfVector(UserDefinedType[NDArray[np.float32]]):
    """pgvector's type of vectors with 16 bits per number."""

    cache_ok = True

    def __init__(self, dimension: int | None = None) -> None:
        self.dimension = dimension

    def get_col_spec(self, **_options: object) -> str:
        """Return the type in SQL."""
        return f"halfvec({self.dimension})" if self.dimension else "halfvec"

    def bind_processor(self, dialect: object) -> Callable[[Any], str]:
        """Return the function that writes a vector as pgvector reads it."""
        # More digits than 16 bits hold, and three times as fast as the shortest text of each number.
        return lambda vector: f"[{','.join(['%.5g'] * len(vector))}]" % tuple(vector.tolist())


_GIVEN = cast(bindparam("given", type_=HalfVector()), HalfVector())


class PgVectorIndex(VectorIndex):
    """A table of vectors, and a row in `sleuth_vectors` about it."""

    def __init__(self, url: str, *, owner: str, collection: str, embedder: Embedder) -> None:
        """Open or create the table's row."""
        super().__init__(owner=owner, collection=collection, embedder=embedder)
        self._table = f"sleuth_vectors_{self._mark}"
        self._rows = self._with_dimension(None)
        self._engine = engine_of(url)
        self._remember()

    def close(self) -> None:
        """Do nothing: the connections are shared by all indexes of a database."""

    def refresh(self) -> None:
        """Do nothing: the server has every change."""

    def clear(self) -> None:
        """Replace the vectors by none, for the present embedder."""
        with self._transaction() as connection:
            connection.execute(text(f"DROP TABLE IF EXISTS {self._table}"))
            connection.execute(delete(_about).where(_about.c.name == self._table))
        self._remember()

    def tidy(self) -> None:
        """Build the neighbor graph once there are enough vectors: much faster than with each of them."""
        name = f"{self._table}{_GRAPH}"
        with self._transaction() as connection:
            is_built = connection.scalar(select(func.to_regclass(name)))
        if is_built or self.count() <= MAX_EXACT:
            return
        graph = f"hnsw (vector halfvec_cosine_ops) WITH (m = {_NEIGHBORS}, ef_construction = {_BUILD_EFFORT})"
        with self._transaction() as connection:
            connection.execute(text(f"CREATE INDEX IF NOT EXISTS {name} ON {self._table} USING {graph}"))
            connection.execute(text(f"DROP INDEX IF EXISTS {self._table}_bits"))  # of a former setting

    def count(self) -> int:
        """Return the number of passages."""
        if self.dimension() is None:
            return 0
        with self._transaction() as connection:
            return connection.execute(select(func.count()).select_from(self._rows)).scalar_one()

    def ids(self) -> set[str]:
        """Return the ids of all passages."""
        if self.dimension() is None:
            return set()
        with self._transaction() as connection:
            return set(connection.scalars(select(self._rows.c.id)))

    def _change(self, ids: Sequence[str], vectors: NDArray[np.float32] | None, delete: Sequence[str]) -> None:
        rows, has_table = self._rows, vectors is not None or self.dimension() is not None
        with self._transaction() as connection:
            if vectors is not None:
                connection.execute(CreateTable(self._with_dimension(vectors.shape[1]), if_not_exists=True))
                given = [{"id": id_, "vector": each} for id_, each in zip(ids, vectors, strict=True)]
                added = insert(rows)
                replaced = added.on_conflict_do_update(index_elements=["id"], set_={"vector": added.excluded.vector})
                connection.execute(replaced, given)
            if delete and has_table:
                connection.execute(rows.delete().where(rows.c.id.in_(delete)))

    def _with_dimension(self, dimension: int | None) -> Table:
        vector = Column("vector", HalfVector(dimension), nullable=False)
        return Table(self._table, MetaData(), Column("id", Text, primary_key=True), vector)

    def _nearest(self, vector: NDArray[np.float32], k: int) -> Scored:
        best = select(self._rows).order_by(self._rows.c.vector.op("<=>")(_GIVEN)).limit(k)
        return self._compare(best, vector, k)

    def _nearest_allowed(self, vector: NDArray[np.float32], k: int, allowed: frozenset[str]) -> Scored:
        wanted = bindparam("ids", list(allowed), ARRAY(Text))
        return self._compare(select(self._rows).where(self._rows.c.id == any_(wanted)), vector, k)

    def _compare(self, candidates: Select[Any], vector: NDArray[np.float32], k: int) -> Scored:
        """Return the nearest of the candidates that a query finds."""
        # Materialized: Postgres would look the wanted ids up in the neighbor graph, which misses some.
        found = candidates.cte("candidates").prefix_with("MATERIALIZED")
        distance = found.c.vector.op("<=>")(_GIVEN).label("distance")
        query = select(found.c.id, distance).order_by(literal_column("distance"), found.c.id).limit(k)
        with self._transaction() as connection:
            connection.execute(text(f"SET LOCAL hnsw.ef_search = {_EFFORT}"))
            # A vector of zeros has no distance to others.
            rows = connection.execute(query, {"given": vector})
            return [(id_, 0.0 if np.isnan(distance) else 1.0 - distance) for id_, distance in rows]

    def _metadata(self) -> dict[str, Any]:
        with self._transaction() as connection:
            return dict(connection.scalar(select(_about.c.about).where(_about.c.name == self._table)) or self._about)

    def _remember(self, **values: int) -> None:
        added = insert(_about).values(name=self._table, about=self._about | values)
        merged = {"about": _about.c.about.op("||")(cast(values, JSONB))}
        with self._transaction() as connection:
            connection.execute(added.on_conflict_do_update(index_elements=["name"], set_=merged))

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Run one transaction; raise StoreError or VectorsReplaced for errors of the database."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except (DBAPIError, PoolExhausted) as error:
            if getattr(getattr(error, "orig", None), "sqlstate", None) == _NO_TABLE:
                raise VectorsReplaced("The vectors are being rebuilt. Search again.") from error
            raise _unusable(error) from error


@lru_cache(maxsize=16)
def engine_of(url: str) -> Engine:
    """Return one pool of connections per database, in which pgvector is ready."""
    engine = open_engine(catalogue_url(Path(), url))
    try:
        with engine.execution_options(sleuth_write=True).begin() as connection:
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
            connection.execute(text("SELECT CAST('[1]' AS halfvec)"))
        make_tables(engine, _metadata)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) in _NO_EXTENSION:
            raise UsageError(
                "SLEUTH_VECTORS=pgvector needs the extension pgvector, 0.7 or newer, in the Postgres of "
                "SLEUTH_DATABASE_URL. Install it, and run in that database, as a superuser: CREATE EXTENSION vector"
            ) from error
        raise _unusable(error) from error
    return engine


def _unusable(error: DBAPIError | PoolExhausted) -> StoreError:
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    return StoreError(f"The vectors in Postgres cannot be used: {reason}. Check SLEUTH_DATABASE_URL.")
