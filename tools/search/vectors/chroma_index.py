"""Vectors in Chroma: embedded below SLEUTH_HOME, or on a Chroma server. All functions block: call them in a thread."""

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from uuid import UUID

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from sleuth.tools.environment import variables
from sleuth.tools.errors import StoreError, UsageError, VectorsReplaced
from sleuth.tools.search.retriever import Scored
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.search.vectors.index import VectorIndex
from sleuth.tools.storage.disk import remedy_of

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

_QUIET: dict[str, Any] = {"anonymized_telemetry": False, "chroma_otel_granularity": "none"}
"""Settings by which Chroma sends nothing about its use, whatever its environment variables contain."""

# The clients of a folder share one server, which the last of them stops: no client may open it meanwhile.
_turn = threading.Lock()


_PAGE = 5_000
_POLL_SECONDS = 0.005
# Of neighbor graphs and of searching them; above the defaults, to find what an exact search does.
_NEIGHBORS, _EFFORT = 32, 200
MAX_MATRICES = 4
"""Filters whose vectors are kept, at most 16 MiB each with 384 numbers."""
# The id and metadata of each collection when this process last read or wrote it: the embedded Chroma does not see other
# processes' changes to a collection that it has read.
_seen: dict[tuple[Path | str, str], tuple[UUID, Any]] = {}


def connect(place: Path | str) -> "Client":
    """Return a client for a folder or a server's URL, to be closed by `disconnect`."""
    with translate_errors(place), _turn:
        if not isinstance(place, Path):
            return _served(place)
        import chromadb
        from chromadb.config import Settings

        # This function and HttpClient are annotated as the interface, which lacks the client's close().
        return cast("Client", chromadb.PersistentClient(str(place), Settings(**_QUIET)))


def disconnect(place: Path | str, client: "Client") -> None:
    """Close a folder's files once no client uses them; the connection to a server is cached."""
    if isinstance(place, Path):
        with _turn:
            client.close()


@lru_cache(maxsize=16)
def _served(address: str) -> "Client":
    """Return one cached client per server: Chroma's close() leaks sockets (chroma#2702)."""
    import chromadb
    from chromadb.config import Settings

    url = urlsplit(address)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise UsageError("SLEUTH_CHROMA_URL must look like http://HOST:PORT.")
    secure = url.scheme == "https"
    settings = Settings(**_QUIET)
    port = url.port or (443 if secure else 8000)
    with variables(no_proxy="*"):  # Chroma's client reads the proxies when it is made, and only then
        return cast("Client", chromadb.HttpClient(host=url.hostname, port=port, ssl=secure, settings=settings))


@contextmanager
def translate_errors(place: Path | str) -> Iterator[None]:
    """Translate Chroma's errors into a StoreError that names the location of the vectors."""
    import httpx
    from chromadb.errors import ChromaError

    try:
        yield
    # AttributeError: Chroma caches a server that could not be opened completely.
    except (ChromaError, httpx.HTTPError, OSError, ValueError, AttributeError) as error:
        where, advice = f"the Chroma server at {place}", "Check SLEUTH_CHROMA_URL."
        if isinstance(place, Path):
            derived = (
                "They are derived from the documents: stop `sleuth serve`, and delete that folder to rebuild them."
            )
            where, advice = str(place), remedy_of(place, f"Check the disk's free space. {derived}")
        raise StoreError(f"The vectors in {where} cannot be used: {error}. {advice}") from error


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

        Every write changes the metadata, so a folder is reloaded, for all its clients in this process, only after the
        writes of others; searches in progress finish on the old data.
        """
        place = self._place, self._key
        with self._swap:
            self._matrices.clear()
            self._collection = self._open()
            if _seen.get(place, self._state()) != self._state():
                if isinstance(self._place, Path):
                    with translate_errors(self._place), _turn:
                        self._place.mkdir(parents=True, exist_ok=True)
                        # All clients of a folder have one server between them, and no refresh.
                        self._client._server.start()
                self._collection = self._open()
            _seen[place] = self._state()

    def _state(self) -> tuple[UUID, Any]:
        return self._collection.id, self._collection.metadata

    def _change(self, ids: Sequence[str], vectors: NDArray[np.float32] | None, delete: Sequence[str]) -> None:
        self._matrices.clear()
        with translate_errors(self._place), self._using_files():
            if delete:
                self._collection.delete(ids=list(delete))
            if vectors is not None:
                self._collection.upsert(ids=list(ids), embeddings=vectors)

    def clear(self) -> None:
        """Replace the collection, with its files, by an empty one for the present embedder."""
        from chromadb.errors import NotFoundError

        with self._swap:
            with translate_errors(self._place), suppress(NotFoundError):
                left = _vector_folders(self._place, self._client.get_collection(self._key, embedding_function=None))
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
        all_ids: set[str] = set()
        with translate_errors(self._place):
            for offset in range(0, self._collection.count(), _PAGE):
                all_ids.update(self._collection.get(include=[], limit=_PAGE, offset=offset)["ids"])
        return all_ids

    @contextmanager
    def _using_files(self) -> Iterator[None]:
        """Exclude other processes: one that loads files which another writes may be ended by signal 11."""
        if not isinstance(self._place, Path):
            yield
            return
        with FileLock(self._place.with_name("chroma.lock"), poll_interval=_POLL_SECONDS):
            yield

    @contextmanager
    def _searching(self) -> Iterator[None]:
        from chromadb.errors import NotFoundError

        with self._swap, translate_errors(self._place), self._using_files():
            try:
                yield
            except NotFoundError as error:
                raise VectorsReplaced("The vectors are being rebuilt. Search again.") from error

    def _nearest(self, vector: NDArray[np.float32], k: int) -> Scored:
        with self._searching():
            result = self._collection.query(query_embeddings=vector[np.newaxis], n_results=k, include=["distances"])
        distances = (result["distances"] or [[]])[0]
        return [(id_, 1.0 - distance) for id_, distance in zip(result["ids"][0], distances, strict=True)]

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

    def _vectors(self, requested: Sequence[str]) -> tuple[list[str], NDArray[np.float32]]:
        """Return the stored ones of the passages with their vectors, of length 1."""
        ids: list[str] = []
        rows: list[NDArray[np.float32]] = []
        for start in range(0, len(requested), _PAGE):
            page = self._collection.get(ids=list(requested[start : start + _PAGE]), include=["embeddings"])
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


def _vector_folders(place: Path | str, collection: "Collection") -> list[Path]:
    """Return the folders of a collection's vectors, which the embedded Chroma does not delete (chroma#5520)."""
    if not isinstance(place, Path):
        return []
    with closing(sqlite3.connect(place / "chroma.sqlite3")) as database, suppress(sqlite3.Error):
        query = "SELECT id FROM segments WHERE scope = 'VECTOR' AND collection = ?"
        return [place / id_ for (id_,) in database.execute(query, (str(collection.id),))]
    return []  # of another layout
