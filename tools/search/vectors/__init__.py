"""Dense search: embedders, and the index in Chroma or Postgres."""

from sleuth.tools.search.vectors.embedder import NONE, Embedder, LocalEmbedder, NoEmbedder, make_embedder, no_embedder
from sleuth.tools.search.vectors.index import MAX_EXACT, VectorIndex, embedder_changed, open_vectors
from sleuth.tools.search.vectors.onnx_model import Vectors

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
]
