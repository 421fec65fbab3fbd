"""Choice of the store of vectors."""

from pathlib import Path

from sleuth.tools.errors import UsageError
from sleuth.tools.search.vectors.chroma_index import ChromaIndex
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.search.vectors.index import VectorIndex
from sleuth.tools.settings import Settings


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


def open_vectors(settings: Settings, embedder: Embedder, *, suffix: str = "") -> VectorIndex:
    """Open or create the vectors of the collection in the settings."""
    place, owner, collection = place_of(settings), settings.owner, settings.collection
    if settings.vectors == "chroma":
        return ChromaIndex(place, owner=owner, collection=collection, embedder=embedder, suffix=suffix)
    from sleuth.tools.search.vectors.pgvector_index import PgVectorIndex

    by_bits = settings.vectors == "pgvector-bits"
    return PgVectorIndex(
        str(place), owner=owner, collection=collection, embedder=embedder, suffix=suffix, by_bits=by_bits
    )
