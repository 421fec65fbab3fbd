"""Vectors in Postgres with the extension pgvector. All methods block: call them in a thread.

Vectors are stored in 16 bits per number. Their index is one of pgvector's neighbor graphs (HNSW), over the vectors or
over one bit of each number; the best by bits are compared again by their vectors.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from sleuth.tools.errors import StoreError, UsageError, VectorsReplaced
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.search.vectors.index import MAX_EXACT, Found, VectorIndex
from sleuth.tools.storage.database import catalogue_url, open_engine

# As for Chroma; pgvector builds a graph of 16 neighbors by default.
_NEIGHBOURS, _EFFORT = 32, 200
# Vectors found by bits for each wanted one, to be compared by 16 bits per number; pgvector finds 1,000 at most.
_RESCORED, _MOST = 10, 1_000
_PRIMARY, _BITS, _NUMBERS = _PARTS = ("_pkey", "_bits", "_numbers")
_GIVEN = "CAST(:vector AS halfvec)"
_NO_TABLE = "42P01"
# SQLSTATEs: no such file, not available, permission denied, no such type.
_NO_EXTENSION = ("58P01", "0A000", "42501", "42704")


class PgVectorIndex(VectorIndex):
    """A table of vectors, and a row in `sleuth_vectors` about it."""

    def __init__(
        self, url: str, *, owner: str, collection: str, embedder: Embedder, suffix: str = "", by_bits: bool = False
    ) -> None:
        """Open or create the table's row; `suffix` ends the table's name, `by_bits` takes the smaller index."""
        super().__init__(owner=owner, collection=collection, embedder=embedder)
        mark = sha256(json.dumps([owner, collection]).encode()).hexdigest()[:32]
        self._table = f"sleuth_vectors_{mark}{suffix.replace('-', '_')}"
        self._by_bits = by_bits
        self._engine = engine_of(url)
        self._remember()

    def close(self) -> None:
        """Do nothing: the connections are shared by all indexes of a database."""

    def refresh(self, *, anew: bool) -> None:
        """Do nothing: the server has every change."""

    def clear(self) -> None:
        """Replace the vectors by none, for the present embedder."""
        with self._transaction() as connection:
            connection.execute(text(f"DROP TABLE IF EXISTS {self._table}"))
            connection.execute(text("DELETE FROM sleuth_vectors WHERE name = :name"), {"name": self._table})
        self._remember()

    def tidy(self) -> None:
        """Build the neighbor graph once there are enough vectors: much faster than with each of them."""
        if self.count() <= MAX_EXACT:
            return
        bits, numbers = f"{self._table}{_BITS}", f"{self._table}{_NUMBERS}"
        wanted, other, indexed = numbers, bits, "vector halfvec_cosine_ops"
        if self._by_bits:
            wanted, other = bits, numbers
            indexed = f"(binary_quantize(vector)::bit({self.dimension()})) bit_hamming_ops"
        graph = f"hnsw ({indexed}) WITH (m = {_NEIGHBOURS}, ef_construction = {_EFFORT})"
        with self._transaction() as connection:
            connection.execute(text(f"CREATE INDEX IF NOT EXISTS {wanted} ON {self._table} USING {graph}"))
            connection.execute(text(f"DROP INDEX IF EXISTS {other}"))

    def replace_by(self, other: Self) -> None:
        """Take over the vectors of another index of this database, which is empty afterwards."""
        mine, its = self._table, other._table
        names = {"mine": mine, "its": its}
        with self._transaction() as connection:
            connection.execute(text(f"DROP TABLE IF EXISTS {mine}"))
            connection.execute(text(f"ALTER TABLE IF EXISTS {its} RENAME TO {mine}"))
            for part in _PARTS:
                connection.execute(text(f"ALTER INDEX IF EXISTS {its}{part} RENAME TO {mine}{part}"))
            connection.execute(text("DELETE FROM sleuth_vectors WHERE name = :mine"), names)
            connection.execute(text("UPDATE sleuth_vectors SET name = :mine WHERE name = :its"), names)

    def count(self) -> int:
        """Return the number of passages."""
        if self.dimension() is None:
            return 0
        with self._transaction() as connection:
            return int(connection.execute(text(f"SELECT count(*) FROM {self._table}")).scalar_one())

    def ids(self) -> set[str]:
        """Return the ids of all passages."""
        if self.dimension() is None:
            return set()
        with self._transaction() as connection:
            return set(connection.execute(text(f"SELECT id FROM {self._table}")).scalars())

    def _change(self, ids: Sequence[str], vectors: NDArray[np.float32] | None, delete: Sequence[str]) -> None:
        with self._transaction() as connection:
            if vectors is not None:
                id_ = f"id text CONSTRAINT {self._table}{_PRIMARY} PRIMARY KEY"
                vector = f"vector halfvec({vectors.shape[1]}) NOT NULL"
                connection.execute(text(f"CREATE TABLE IF NOT EXISTS {self._table} ({id_}, {vector})"))
                rows = [{"id": id_, "vector": _literal(each)} for id_, each in zip(ids, vectors, strict=True)]
                insert = f"INSERT INTO {self._table} VALUES (:id, CAST(:vector AS halfvec))"
                update = "ON CONFLICT (id) DO UPDATE SET vector = excluded.vector"
                connection.execute(text(f"{insert} {update}"), rows)
            if delete and self.dimension() is not None:
                connection.execute(text(f"DELETE FROM {self._table} WHERE id = ANY(:ids)"), {"ids": list(delete)})

    def _search(self, vector: NDArray[np.float32], k: int) -> Found:
        return self._find(vector, k) if self.dimension() else []

    def _nearest(self, vector: NDArray[np.float32], k: int) -> Found:
        order, depth = f"vector <=> {_GIVEN}", k
        if self._by_bits:
            bits, depth = f"bit({len(vector)})", min(_MOST, k * _RESCORED)
            order = f"binary_quantize(vector)::{bits} <~> binary_quantize({_GIVEN})::{bits}"
        best = f"SELECT id, vector FROM {self._table} ORDER BY {order} LIMIT {depth}"
        return self._compare(best, vector, k, effort=min(_MOST, max(_EFFORT, depth)))

    def _nearest_allowed(self, vector: NDArray[np.float32], k: int, allowed: frozenset[str]) -> Found:
        return self._compare(f"SELECT id, vector FROM {self._table} WHERE id = ANY(:ids)", vector, k, ids=list(allowed))

    def _compare(
        self, candidates: str, vector: NDArray[np.float32], k: int, *, effort: int = _EFFORT, **values: object
    ) -> Found:
        """Return the nearest of the candidates that a query finds."""
        # Materialized: Postgres would look the wanted ids up in the neighbor graph, which misses some.
        query = (
            f"WITH candidates AS MATERIALIZED ({candidates}) "
            f"SELECT id, vector <=> {_GIVEN} FROM candidates ORDER BY 2, 1 LIMIT {k}"
        )
        with self._transaction() as connection:
            connection.execute(text(f"SET LOCAL hnsw.ef_search = {effort}"))
            found = connection.execute(text(query), {"vector": _literal(vector), **values})
            # A vector of zeros has no distance to others.
            return [(id_, 0.0 if np.isnan(distance) else 1.0 - distance) for id_, distance in found]

    def _metadata(self) -> dict[str, Any]:
        with self._transaction() as connection:
            query = text("SELECT about FROM sleuth_vectors WHERE name = :name")
            return dict(connection.execute(query, {"name": self._table}).scalar() or self._about)

    def _remember(self, **values: int) -> None:
        about = "sleuth_vectors.about || CAST(:values AS jsonb)"
        insert = "INSERT INTO sleuth_vectors VALUES (:name, CAST(:all AS jsonb))"
        row = {"name": self._table, "all": json.dumps(self._about | values), "values": json.dumps(values)}
        with self._transaction() as connection:
            connection.execute(text(f"{insert} ON CONFLICT (name) DO UPDATE SET about = {about}"), row)

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
            connection.execute(text("CREATE TABLE IF NOT EXISTS sleuth_vectors (name text PRIMARY KEY, about jsonb)"))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) in _NO_EXTENSION:
            raise UsageError(
                "SLEUTH_VECTORS=pgvector needs the extension pgvector, 0.7 or newer, in the Postgres of "
                "SLEUTH_DATABASE_URL. Install it there, and have a superuser of that database run: CREATE EXTENSION vector"
            ) from error
        raise _unusable(error) from error
    return engine


def _unusable(error: DBAPIError | PoolExhausted) -> StoreError:
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    return StoreError(f"The vectors in Postgres cannot be used: {reason}. Check SLEUTH_DATABASE_URL.")


def _literal(vector: NDArray[np.float32]) -> str:
    """Return a vector as pgvector reads it."""
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
