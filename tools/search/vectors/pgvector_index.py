"""Vectors in Postgres with the extension pgvector. All methods block: call them in a thread.

Vectors are stored in 16 bits per number. Their index is one of pgvector's neighbor graphs (HNSW).
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, TextClause, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from sleuth.tools.errors import StoreError, UsageError, VectorsReplaced
from sleuth.tools.search.retriever import Scored
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.search.vectors.index import MAX_EXACT, VectorIndex
from sleuth.tools.storage.database import catalogue_url, open_engine

# Vectors that a search keeps on its way through the graph, the most that pgvector allows: fewer miss many of the
# nearest from 100,000 vectors on.
_EFFORT = 1_000
# pgvector's defaults: with Chroma's wider graphs, building takes four times as long and recall is hardly higher.
_NEIGHBORS, _BUILD_EFFORT = 16, 64
_GRAPH = "_numbers"
_NO_TABLE = "42P01"
# SQLSTATEs: no such file, not available, permission denied, no such type.
_NO_EXTENSION = ("58P01", "0A000", "42501", "42704")


class PgVectorIndex(VectorIndex):
    """A table of vectors, and a row in `sleuth_vectors` about it."""

    def __init__(self, url: str | None, *, owner: str, collection: str, embedder: Embedder) -> None:
        """Open or create the table's row."""
        super().__init__(owner=owner, collection=collection, embedder=embedder)
        self._table = f"sleuth_vectors_{self._mark}"
        self._engine = engine_of(url)
        self._remember()

    def close(self) -> None:
        """Do nothing: the connections are shared by all indexes of a database."""

    def refresh(self) -> None:
        """Do nothing: the server has every change."""

    def clear(self) -> None:
        """Replace the vectors by none, for the present embedder."""
        with self._transaction() as connection:
            connection.execute(self._sql("DROP TABLE IF EXISTS VECTORS"))
            connection.execute(text("DELETE FROM sleuth_vectors WHERE name = :name"), {"name": self._table})
        self._remember()

    def tidy(self) -> None:
        """Build the neighbor graph once there are enough vectors: much faster than with each of them."""
        name = f"{self._table}{_GRAPH}"
        with self._transaction() as connection:
            is_built = connection.scalar(text("SELECT to_regclass(:name)"), {"name": name})
        if is_built or self.count() <= MAX_EXACT:
            return
        options = f"m = {_NEIGHBORS}, ef_construction = {_BUILD_EFFORT}"
        graph = f"USING hnsw (vector halfvec_cosine_ops) WITH ({options})"
        with self._transaction() as connection:
            connection.execute(self._sql(f"CREATE INDEX IF NOT EXISTS {name} ON VECTORS {graph}"))

    def count(self) -> int:
        """Return the number of passages."""
        if self.dimension() is None:
            return 0
        with self._transaction() as connection:
            return int(connection.execute(self._sql("SELECT count(*) FROM VECTORS")).scalar_one())

    def ids(self) -> set[str]:
        """Return the ids of all passages."""
        if self.dimension() is None:
            return set()
        with self._transaction() as connection:
            return set(connection.scalars(self._sql("SELECT id FROM VECTORS")))

    def _change(self, ids: Sequence[str], vectors: NDArray[np.float32] | None, delete: Sequence[str]) -> None:
        has_table = vectors is not None or self.dimension() is not None
        with self._transaction() as connection:
            if vectors is not None:
                columns = f"id TEXT PRIMARY KEY, vector halfvec({vectors.shape[1]}) NOT NULL"
                connection.execute(self._sql(f"CREATE TABLE IF NOT EXISTS VECTORS ({columns})"))
                added = "INSERT INTO VECTORS (id, vector) VALUES (:id, CAST(:vector AS halfvec))"
                replaced = "ON CONFLICT (id) DO UPDATE SET vector = excluded.vector"
                rows = [{"id": id_, "vector": _as_text(each)} for id_, each in zip(ids, vectors, strict=True)]
                connection.execute(self._sql(f"{added} {replaced}"), rows)
            if delete and has_table:
                connection.execute(self._sql("DELETE FROM VECTORS WHERE id = ANY(:ids)"), {"ids": list(delete)})

    def _sql(self, query: str) -> TextClause:
        return text(query.replace("VECTORS", self._table))

    def _nearest(self, vector: NDArray[np.float32], k: int) -> Scored:
        return self._compare("ORDER BY vector <=> CAST(:given AS halfvec) LIMIT :k", vector, k)

    def _nearest_allowed(self, vector: NDArray[np.float32], k: int, allowed: frozenset[str]) -> Scored:
        return self._compare("WHERE id = ANY(:ids)", vector, k, ids=list(allowed))

    def _compare(self, candidates: str, vector: NDArray[np.float32], k: int, **values: list[str]) -> Scored:
        """Return the nearest of the candidates that a clause finds."""
        # Materialized: Postgres would look the wanted ids up in the neighbor graph, which misses some.
        query = self._sql(
            f"WITH candidates AS MATERIALIZED (SELECT id, vector FROM VECTORS {candidates}) "  # noqa: S608 - ours
            "SELECT id, vector <=> CAST(:given AS halfvec) AS distance FROM candidates ORDER BY distance, id LIMIT :k"
        )
        with self._transaction() as connection:
            connection.execute(text(f"SET LOCAL hnsw.ef_search = {_EFFORT}"))
            # A vector of zeros has no distance to others.
            rows = connection.execute(query, {"given": _as_text(vector), "k": k, **values})
            return [(id_, 0.0 if np.isnan(distance) else 1.0 - distance) for id_, distance in rows]

    def _metadata(self) -> dict[str, Any]:
        query = text("SELECT about FROM sleuth_vectors WHERE name = :name")
        with self._transaction() as connection:
            return dict(connection.scalar(query, {"name": self._table}) or self._about)

    def _remember(self, **values: int) -> None:
        query = text(
            "INSERT INTO sleuth_vectors (name, about) VALUES (:name, CAST(:about AS jsonb)) "
            "ON CONFLICT (name) DO UPDATE SET about = sleuth_vectors.about || CAST(:values AS jsonb)"
        )
        row = {"name": self._table, "about": json.dumps(self._about | values), "values": json.dumps(values)}
        with self._transaction() as connection:
            connection.execute(query, row)

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
def engine_of(url: str | None) -> Engine:
    """Return one pool of connections per database, in which pgvector is ready; raise UsageError if none is set."""
    if url is None:
        raise UsageError("SLEUTH_VECTORS=pgvector needs a Postgres: set SLEUTH_DATABASE_URL.")
    engine = open_engine(catalogue_url(Path(), url))
    try:
        with engine.execution_options(sleuth_write=True).begin() as connection:
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
            connection.execute(text("SELECT CAST('[1]' AS halfvec)"))
            connection.execute(text("CREATE TABLE IF NOT EXISTS sleuth_vectors (name TEXT PRIMARY KEY, about JSONB)"))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) in _NO_EXTENSION:
            raise UsageError(
                "SLEUTH_VECTORS=pgvector needs the extension pgvector, 0.7 or newer, in the Postgres of "
                "SLEUTH_DATABASE_URL. Install it, and run in that database, as a superuser: CREATE EXTENSION vector"
            ) from error
        raise _unusable(error) from error
    return engine


def _as_text(vector: NDArray[np.float32]) -> str:
    """Return a vector as pgvector reads it."""
    # More digits than 16 bits hold, and three times as fast as the shortest text of each number.
    return f"[{','.join(['%.5g'] * len(vector))}]" % tuple(vector.tolist())


def _unusable(error: DBAPIError | PoolExhausted) -> StoreError:
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    return StoreError(f"The vectors in Postgres cannot be used: {reason}. Check SLEUTH_DATABASE_URL.")
