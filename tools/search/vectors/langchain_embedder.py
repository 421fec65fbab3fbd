"""LangChain embeddings as an `Embedder`, for applications that bring their own."""

import numpy as np
from langchain_core.embeddings import Embeddings

from sleuth.tools.errors import UsageError
from sleuth.tools.search.vectors.onnx_model import Vectors


class LangChainEmbedder:
    """An embedder that uses a LangChain `Embeddings` object."""

    def __init__(self, embeddings: Embeddings, *, name: str | None = None) -> None:
        """Set the embeddings.

        Args:
            embeddings: any LangChain embeddings; only the synchronous methods are used, in threads.
            name: the name stored with a collection; by default the class and its model, as in "OllamaEmbeddings:bge".
        """
        self._embeddings = embeddings
        self.name = name or _name_of(embeddings)

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Return one unit row per text."""
        return _unit(self._embeddings.embed_documents(texts), len(texts))

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of a question."""
        vector: Vectors = _unit([self._embeddings.embed_query(text)], 1)[0]
        return vector


def _name_of(embeddings: Embeddings) -> str:
    model = getattr(embeddings, "model_name", None) or getattr(embeddings, "model", None)
    return f"{type(embeddings).__name__}:{model}" if isinstance(model, str) else type(embeddings).__name__


def _unit(rows: list[list[float]], count: int) -> Vectors:
    found = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(found, axis=-1, keepdims=True) if found.ndim == 2 else np.zeros((1, 1))
    if found.ndim != 2 or len(found) != count or not np.isfinite(lengths).all() or not lengths.all():
        raise UsageError(
            "The embedder returned no usable vectors: it must return one for each text, none of them zero."
        )
    unit: Vectors = found / lengths
    return unit
