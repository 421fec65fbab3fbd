"""Chroma clients: embedded in this process, with files in a folder, or connected to a server.

All functions block: call them in a thread.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from sleuth.tools.errors import StoreError, UsageError

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

_QUIET: dict[str, Any] = {"anonymized_telemetry": False, "chroma_otel_granularity": "none"}
"""Settings by which Chroma sends nothing about its use, whatever its environment variables contain."""

# The clients of a folder share one server, which the last of them stops: no client may open it meanwhile.
_turn = threading.Lock()


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


def refresh_clients(place: Path | str, client: "Client") -> None:
    """Reload a folder for all its clients in this process; searches in progress finish on the old data.

    The embedded Chroma does not see other processes' changes to a collection that it has read, and caches deleted data.
    """
    if isinstance(place, Path):
        with translate_errors(place), _turn:
            place.mkdir(parents=True, exist_ok=True)
            client._server.start()  # all clients of a folder have one server between them, and no refresh


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
    with _without_proxies():
        return cast("Client", chromadb.HttpClient(host=url.hostname, port=port, ssl=secure, settings=settings))


@contextmanager
def _without_proxies() -> Iterator[None]:
    """Hide the proxies of the environment, which Chroma's client reads when it is made, and only then."""
    before, os.environ["no_proxy"] = os.environ.get("no_proxy"), "*"
    try:
        yield
    finally:
        if before is None:
            del os.environ["no_proxy"]
        else:
            os.environ["no_proxy"] = before


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
            where, advice = str(place), "Check the disk's free space. They are derived from the documents: "
            advice += "delete that folder to rebuild them."
        raise StoreError(f"The vectors in {where} cannot be used: {error}. {advice}") from error


def vector_folders(place: Path | str, collection: "Collection") -> list[Path]:
    """Return the folders of a collection's vectors, which the embedded Chroma does not delete (chroma#5520)."""
    if not isinstance(place, Path):
        return []
    with closing(sqlite3.connect(place / "chroma.sqlite3")) as database, suppress(sqlite3.Error):
        query = "SELECT id FROM segments WHERE scope = 'VECTOR' AND collection = ?"
        return [place / id_ for (id_,) in database.execute(query, (str(collection.id),))]
    return []  # of another layout
