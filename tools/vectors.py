"""The vectors of one collection, in Chroma: embedded below SLEUTH_HOME, or a Chroma server.

Chroma is given our own embeddings and keeps ids and vectors only; texts stay in the catalogue. All methods block: call
them in a thread.
"""

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import numpy as np

from sleuth.tools.documents import Passage
from sleuth.tools.embedder import Embedder, Vectors
from sleuth.tools.errors import EmbedderChanged, StoreError, UsageError
from sleuth.tools.vector_probe import enter

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

_PAGE = 5_000
# Wider than Chroma's defaults: at some ten thousand passages the approximate search then finds what an exact one does.
_NEIGHBOURS, _EFFORT = 32, 200


class VectorIndex:
    """Embeddings of one collection's passages; remembers its embedder and how far in the catalogue's journal it is."""

    name = "vectors"

    def __init__(self, place: Path | str, *, owner: str, collection: str, embedder: Embedder) -> None:
        """Opens or makes the collection; `place` is a folder or a server's URL."""
        self._place = place
        self._about = {"owner": owner, "collection": collection, "embedder": embedder.name}
        self._key = "sleuth-" + sha256(json.dumps([owner, collection]).encode()).hexdigest()[:32]
        self._embedder = embedder
        self._mark = _enter(place, self._key) if isinstance(place, Path) else None
        try:
            self._client = _connect(place)
            try:
                self._collection = self._open()
            except BaseException:
                self._disconnect()
                raise
        except BaseException:
            self._leave()
            raise

    def close(self) -> None:
        """Lets go of the files; the connection to a server is kept for the next one who wants it."""
        self._disconnect()
        self._leave()

    def refresh(self) -> None:
        """Sees what another process has written: the embedded Chroma reads its files only when it is opened."""
        if isinstance(self._place, Path):
            self._disconnect()
            self._client = _connect(self._place)
        self._collection = self._open()

    def applied(self) -> int:
        """The last journal number that this index contains."""
        return int(self._metadata().get("applied", 0))

    def set_applied(self, seq: int) -> None:
        """Remembers how far in the journal this index is."""
        self._remember(applied=seq)

    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        """Embeds passages and puts them in, takes ids out; doing it again changes nothing."""
        vectors = self._embedder.embed_passages([index_text(passage) for passage in upsert]) if upsert else None
        if vectors is not None:
            self._check_dimension(vectors)
        with _speaking(self._place):
            if delete:
                self._collection.delete(ids=list(delete))
            if vectors is not None:
                self._collection.upsert(ids=[passage.id for passage in upsert], embeddings=vectors)

    def clear(self) -> None:
        """Throws the collection away and makes an empty one for the present embedder."""
        with _speaking(self._place):
            left = self._folders()
            self._client.delete_collection(self._key)
        for folder in left:
            shutil.rmtree(folder, ignore_errors=True)
        self._collection = self._open()

    def count(self) -> int:
        """How many passages are in."""
        with _speaking(self._place):
            return self._collection.count()

    def ids(self) -> set[str]:
        """The ids of all passages that are in."""
        found: set[str] = set()
        with _speaking(self._place):
            for offset in range(0, self._collection.count(), _PAGE):
                found.update(self._collection.get(include=[], limit=_PAGE, offset=offset)["ids"])
        return found

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """The passages nearest in meaning, as ids with cosine similarities, best first."""
        vector = self._embedder.embed_query(text)
        with _speaking(self._place):
            found = self._collection.query(query_embeddings=vector[np.newaxis], n_results=k, include=["distances"])
        distances = (found["distances"] or [[]])[0]
        return [(id_, 1.0 - distance) for id_, distance in zip(found["ids"][0], distances, strict=True)]

    def dimension(self) -> int | None:
        """The length of the vectors; None while the collection is empty."""
        known = self._metadata().get("dimension")
        return None if known is None else int(known)

    def check_embedder(self) -> None:
        """Raises EmbedderChanged where the collection was built with another embedder."""
        built_with = str(self._metadata().get("embedder"))
        if built_with != self._embedder.name:
            raise embedder_changed(self._about["collection"], built_with, self._embedder.name)

    def _folders(self) -> list[Path]:
        """Where the embedded Chroma has this collection's vectors, and leaves them when it is deleted (chroma#5520)."""
        if not isinstance(self._place, Path):
            return []
        with closing(sqlite3.connect(self._place / "chroma.sqlite3")) as database, suppress(sqlite3.Error):
            query = "SELECT id FROM segments WHERE scope = 'VECTOR' AND collection = ?"
            return [self._place / id_ for (id_,) in database.execute(query, (str(self._collection.id),))]
        return []  # of another layout

    def _disconnect(self) -> None:
        if isinstance(self._place, Path):
            self._client.close()

    def _leave(self) -> None:
        if self._mark:
            self._mark.unlink(missing_ok=True)

    def _check_dimension(self, vectors: Vectors) -> None:
        length, known = vectors.shape[1], self.dimension()
        if known is None:
            self._remember(dimension=length)
        elif known != length:
            name = self._embedder.name
            raise embedder_changed(self._about["collection"], f"{name} ({known} numbers)", f"{name} ({length} numbers)")

    def _metadata(self) -> dict[str, Any]:
        return dict(self._collection.metadata or {})

    def _remember(self, **values: int) -> None:
        with _speaking(self._place):
            self._collection.modify(metadata=self._metadata() | values)

    def _open(self) -> "Collection":
        from chromadb.api.collection_configuration import CreateCollectionConfiguration, CreateHNSWConfiguration

        graph = CreateHNSWConfiguration(
            space="cosine", max_neighbors=_NEIGHBOURS, ef_construction=_EFFORT, ef_search=_EFFORT
        )
        with _speaking(self._place):
            return self._client.get_or_create_collection(
                self._key,
                metadata=dict(self._about),
                configuration=CreateCollectionConfiguration(hnsw=graph),
                embedding_function=None,
            )


def index_text(passage: Passage) -> str:
    """What is embedded of a passage: the title says what the text is about."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


def embedder_changed(collection: str, built_with: str, present: str) -> EmbedderChanged:
    """The refusal to mix two embedders in one collection."""
    return EmbedderChanged(
        f"Collection {collection!r} was built with the embedder {built_with}, the present one is {present}. "
        "Set SLEUTH_EMBEDDER back, or embed everything anew with `sleuth ingest --rebuild`."
    )


def _enter(folder: Path, key: str) -> Path:
    with _speaking(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return enter(folder, key)


def _connect(place: Path | str) -> "Client":
    with _speaking(place):
        return _embedded(place) if isinstance(place, Path) else _served(place)


def _embedded(folder: Path) -> "Client":
    import chromadb
    from chromadb.config import Settings

    # This function and HttpClient are annotated as the interface, which lacks the client's close().
    return cast("Client", chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False)))


@lru_cache(maxsize=16)
def _served(address: str) -> "Client":
    """One client for each server: what Chroma's close() leaves open, sockets among it, would add up (chroma#2702)."""
    import chromadb
    from chromadb.config import Settings

    url = urlsplit(address)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise UsageError("SLEUTH_CHROMA_URL must look like http://HOST:PORT.")
    secure = url.scheme == "https"
    port = url.port or (443 if secure else 8000)
    quiet = Settings(anonymized_telemetry=False)
    return cast("Client", chromadb.HttpClient(host=url.hostname, port=port, ssl=secure, settings=quiet))


@contextmanager
def _speaking(place: Path | str) -> Iterator[None]:
    """Turns whatever Chroma raises into one kind of error that says where the vectors are."""
    import httpx
    from chromadb.errors import ChromaError

    try:
        yield
    # AttributeError: what could not be opened once, Chroma keeps, and has not all its parts.
    except (ChromaError, httpx.HTTPError, OSError, ValueError, AttributeError) as error:
        where = place if isinstance(place, Path) else f"the Chroma server at {place}"
        look = (
            "Check the disk's free space. They are derived: delete that folder and they are made again."
            if isinstance(place, Path)
            else "Check SLEUTH_CHROMA_URL."
        )
        raise StoreError(f"The vectors in {where} cannot be used: {error}. {look}") from error
