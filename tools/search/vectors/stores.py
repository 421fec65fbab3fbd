"""Choice of the store of vectors."""

import logging
from pathlib import Path

from sleuth.tools.errors import UsageError
from sleuth.tools.search.vectors.chroma_index import ChromaIndex
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.search.vectors.index import VectorIndex
from sleuth.tools.settings import Settings

_log = logging.getLogger(__name__)


def place_of(settings: Settings) -> Path | str:
    """Return the folder or the server's URL of the vectors.

    Raises:
        UsageError: pgvector is set without a Postgres.
    """
    if settings.vectors == "chroma":
        return settings.chroma_url or settings.home / "chroma"
    if settings.database_url is None:
        raise UsageError(f"SLEUTH_VECTORS={settings.vectors} needs a Postgres: set SLEUTH_DATABASE_URL.")
    return settings.database_url


def open_vectors(settings: Settings, embedder: Embedder) -> VectorIndex:
    """Open or create the vectors of the collection in the settings."""
    place, owner, collection = place_of(settings), settings.owner, settings.collection
    if settings.vectors == "chroma":
        return ChromaIndex(place, owner=owner, collection=collection, embedder=embedder)
    from sleuth.tools.search.vectors.pgvector_index import PgVectorIndex

    if settings.vectors == "pgvector-bits":
        _log.warning("SLEUTH_VECTORS=pgvector-bits is now pgvector, and its name will be removed: use pgvector.")
    return PgVectorIndex(str(place), owner=owner, collection=collection, embedder=embedder)
