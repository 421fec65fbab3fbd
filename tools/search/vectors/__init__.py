"""Dense search: embedders and the Chroma index."""

from sleuth.tools.search.vectors.embedder import (
    NONE,
    Embedder,
    LocalEmbedder,
    NoEmbedder,
    Vectors,
    make_embedder,
    no_embedder,
)
from sleuth.tools.search.vectors.index import VectorIndex, embedder_changed

__all__ = [
    "NONE",
    "Embedder",
    "LocalEmbedder",
    "NoEmbedder",
    "VectorIndex",
    "Vectors",
    "embedder_changed",
    "make_embedder",
    "no_embedder",
]
