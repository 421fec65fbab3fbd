"""An embedder for tests: words hashed into a small space, the same on every machine, in microseconds."""

from hashlib import sha256

import numpy as np

from sleuth.tools.search.vectors.embedder import Vectors


class HashingEmbedder:
    """Texts that share words are near each other; `embedded` counts the passages it was given."""

    def __init__(self, name: str = "hashing", dimension: int = 512) -> None:
        self.name = name
        self.embedded: list[str] = []
        self._dimension = dimension

    def embed_passages(self, texts: list[str]) -> Vectors:
        self.embedded += texts
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        vector = np.full(self._dimension, 1e-3, dtype=np.float32)
        for word in text.lower().split():
            digest = sha256(word.strip(".,?!").encode()).digest()
            vector[int.from_bytes(digest[:4], "big") % self._dimension] += 1.0
        unit: Vectors = vector / np.linalg.norm(vector)
        return unit
