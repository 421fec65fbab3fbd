"""Dense search: embedders, and the index in Chroma or Postgres."""

from sleuth.tools.search.vectors.embedder import NONE, Embedder, NoEmbedder
from sleuth.tools.search.vectors.index import VectorIndex
from sleuth.tools.search.vectors.onnx_model import Vectors

__all__ = ["NONE", "Embedder", "NoEmbedder", "VectorIndex", "Vectors"]
