"""Vectors in Chroma: embedded below SLEUTH_HOME, or on a Chroma server. All methods block: call them in a thread."""

import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.errors import VectorsReplaced
from sleuth.tools.search.retriever import Scored
from sleuth.tools.search.vectors.chroma import (
    connect,
    disconnect,
    refresh_clients,
    translate_errors,
    vector_folders,
)
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.search.vectors.index import VectorIndex

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

_PAGE = 5_000
# Of neighbor graphs and of searching them; above the defaults, to find what an exact search does.
_NEIGHBORS, _EFFORT = 32, 200
MAX_MATRICES = 4
"""Filters whose vectors are kept, at most 16 MiB each with 384 numbers."""
# The id and metadata of each collection when this process last read or wrote it: the embedded Chroma does not see other
# processes' changes to a collection that it has read.
_seen: dict[tuple[Path | str, str], tuple[UUID, Any]] = {}


class ChromaIndex(VectorIndex):
    """A Chroma collection, with its metadata."""

    def __init__(self, place: Path | str, *, owner: str, collection: str, embedder: Embedder) -> None:
        """Open or create the collection; `place` is a folder or a server's URL."""
        super().__init__(owner=owner, collection=collection, embedder=embedder)
        self._place = place
        self._key = f"sleuth-{self._mark}"
        self._swap = threading.RLock()  # any thread may search, also during a refresh
        self._matrices: dict[frozenset[str], tuple[list[str], NDArray[np.float32]]] = {}
        self._client: Client = connect(place)
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the files; the connection to a server is cached."""
        disconnect(self._place, self._client)

    def refresh(self) -> None:
        """Reload changes from other indexes and other processes.

        Every write changes the metadata, so the clients of this process are restarted only after the writes of others.
        """
        place = self._place, self._key
        with self._swap:
            self._matrices.clear()
            self._collection = self._open()
            if _seen.get(place, self._state()) != self._state():
                refresh_clients(self._place, self._client)
                self._collection = self._open()
            _seen[place] = self._state()

    def _state(self) -> tuple[UUID, Any]:
        return self._collection.id, self._collection.metadata

    def _change(self, ids: Sequence[str], vectors: NDArray[np.float32] | None, delete: Sequence[str]) -> None:
        self._matrices.clear()
        with translate_errors(self._place):
            if delete:
                self._collection.delete(ids=list(delete))
            if vectors is not None:
                self._collection.upsert(ids=list(ids), embeddings=vectors)

    def clear(self) -> None:
        """Replace the collection, with its files, by an empty one for the present embedder."""
        from chromadb.errors import NotFoundError

        with self._swap:
            with translate_errors(self._place), suppress(NotFoundError):
                left = vector_folders(self._place, self._client.get_collection(self._key, embedding_function=None))
                self._client.delete_collection(self._key)
                for folder in left:
                    shutil.rmtree(folder, ignore_errors=True)
            self.refresh()

    def count(self) -> int:
        """Return the number of passages."""
        with translate_errors(self._place):
            return self._collection.count()

    def ids(self) -> set[str]:
        """Return the ids of all passages."""
        found: set[str] = set()
        with translate_errors(self._place):
            for offset in range(0, self._collection.count(), _PAGE):
                found.update(self._collection.get(include=[], limit=_PAGE, offset=offset)["ids"])
        return found

    @contextmanager
    def _searching(self) -> Iterator[None]:
        from chromadb.errors import NotFoundError

        with self._swap, translate_errors(self._place):
            try:
                yield
            except NotFoundError as error:
                raise VectorsReplaced("The vectors are being rebuilt. Search again.") from error

    def _nearest(self, vector: NDArray[np.float32], k: int) -> Scored:
        with self._searching():
            found = self._collection.query(query_embeddings=vector[np.newaxis], n_results=k, include=["distances"])
        distances = (found["distances"] or [[]])[0]
        return [(id_, 1.0 - distance) for id_, distance in zip(found["ids"][0], distances, strict=True)]

    def _nearest_allowed(self, vector: NDArray[np.float32], k: int, allowed: frozenset[str]) -> Scored:
        """Compare all allowed passages: Chroma's own filter is slower, and misses some.

        Their vectors are kept for the next search with this filter.
        """
        with self._searching():
            if allowed not in self._matrices:
                if len(self._matrices) >= MAX_MATRICES:
                    self._matrices.pop(next(iter(self._matrices)))
                self._matrices[allowed] = self._vectors(sorted(allowed))
            ids, matrix = self._matrices[allowed]
        similarities = matrix @ (vector / (np.linalg.norm(vector) or 1.0))
        best = np.argsort(-similarities, kind="stable")[:k]
        return [(ids[at], float(similarities[at])) for at in best]

    def _vectors(self, wanted: Sequence[str]) -> tuple[list[str], NDArray[np.float32]]:
        """Return the stored ones of the passages with their vectors, of length 1."""
        ids: list[str] = []
        rows: list[NDArray[np.float32]] = []
        for start in range(0, len(wanted), _PAGE):
            page = self._collection.get(ids=list(wanted[start : start + _PAGE]), include=["embeddings"])
            ids += page["ids"]
            rows.append(np.asarray(page["embeddings"], dtype=np.float32).reshape(len(page["ids"]), -1))
        if not ids:
            return [], np.zeros((0, self.dimension() or 1), dtype=np.float32)
        matrix = np.concatenate([part for part in rows if len(part)])
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        return ids, matrix / np.where(lengths > 0, lengths, 1.0)

    def _metadata(self) -> dict[str, Any]:
        return dict(self._collection.metadata or {})

    def _remember(self, **values: int) -> None:
        with translate_errors(self._place):
            self._collection.modify(metadata=self._metadata() | values)
            _seen[self._place, self._key] = self._state()

    def _open(self) -> "Collection":
        from chromadb.api.collection_configuration import CreateCollectionConfiguration, CreateHNSWConfiguration
        from chromadb.errors import NotFoundError

        with translate_errors(self._place):
            with suppress(NotFoundError):
                return self._client.get_collection(self._key, embedding_function=None)
            graph = CreateHNSWConfiguration(
                space="cosine", max_neighbors=_NEIGHBORS, ef_construction=_EFFORT, ef_search=_EFFORT
            )
            configuration = CreateCollectionConfiguration(hnsw=graph)
            return self._client.get_or_create_collection(
                self._key, metadata=dict(self._about), configuration=configuration, embedding_function=None
            )
