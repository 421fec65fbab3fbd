"""How Chroma is spoken to: embedded in this process, with files in a folder, or a server of its own.

All functions block: call them in a thread.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from sleuth.tools.errors import StoreError, UsageError

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection


# Clients of one folder share what the last of them stops; Chroma does not keep one from coming while it does.
_turn = threading.Lock()


def connect(place: Path | str) -> "Client":
    """A client for a folder or a server's URL, to be given back by `disconnect`."""
    with speaking(place), _turn:
        return _embedded(place) if isinstance(place, Path) else _served(place)


def disconnect(place: Path | str, client: "Client") -> None:
    """Lets go of a folder's files once nobody uses them; the connection to a server is kept for the next one."""
    if isinstance(place, Path):
        with _turn:
            client.close()


def reopen(place: Path | str, client: "Client") -> None:
    """Has a folder read anew by all its clients in this process; who is reading it ends with what there was.

    The embedded Chroma sees nothing that others write once it has read a collection, and holds what was deleted.
    """
    if isinstance(place, Path):
        with speaking(place), _turn:
            client._server.start()  # all clients of a folder have one server between them, and no refresh


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
def speaking(place: Path | str) -> Iterator[None]:
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


def folders(place: Path | str, collection: "Collection") -> list[Path]:
    """Where the embedded Chroma has a collection's vectors, and leaves them when it is deleted (chroma#5520)."""
    if not isinstance(place, Path):
        return []
    with closing(sqlite3.connect(place / "chroma.sqlite3")) as database, suppress(sqlite3.Error):
        query = "SELECT id FROM segments WHERE scope = 'VECTOR' AND collection = ?"
        return [place / id_ for (id_,) in database.execute(query, (str(collection.id),))]
    return []  # of another layout
