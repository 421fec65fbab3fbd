"""Dense search: embedders, and the index in Chroma or Postgres."""

from sleuth.tools.search.vectors.embedder import NONE, Embedder, LocalEmbedder, NoEmbedder, make_embedder, no_embedder
from sleuth.tools.search.vectors.index import MAX_EXACT, VectorIndex, embedder_changed
from sleuth.tools.search.vectors.onnx_model import Vectors
from sleuth.tools.search.vectors.stores import open_vectors, place_of

__all__ = [
    "MAX_EXACT",
    "NONE",
    "Embedder",
    "LocalEmbedder",
    "NoEmbedder",
    "VectorIndex",
    "Vectors",
    "embedder_changed",
    "make_embedder",
    "no_embedder",
    "open_vectors",
    "place_of",
]
