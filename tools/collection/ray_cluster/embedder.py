"""Embedding of passages on a Ray cluster.

All methods block: call them in a thread.
"""

from functools import lru_cache

import numpy as np

from sleuth.tools.collection.ray_cluster.connection import RETRIES, Connect, cluster_failed, connect, processors
from sleuth.tools.search.vectors import Embedder, LocalEmbedder, Vectors

_MIN_PASSAGES = 16
"""Smallest number of passages of a task."""


class RayEmbedder:
    """Embeds passages on the workers of a cluster, and questions in this process."""

    def __init__(self, address: str, embedder: Embedder, *, connect: Connect = connect) -> None:
        """Set the cluster; the first passages connect.

        Args:
            address: as in `connect`.
            embedder: the embedder of questions; the workers load the model of the same name.
            connect: connects to the cluster.
        """
        self.name = embedder.name
        self._address = address
        self._embedder = embedder
        self._connect = connect

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Return one row per text.

        Raises:
            UsageError: Ray is not installed, or no cluster answers.
            StoreError: a worker cannot load the model, or the cluster fails.
        """
        ray = self._connect(self._address)
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(embed)
        size = max(_MIN_PASSAGES, -(-len(texts) // processors(ray)))
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        try:
            vectors: list[Vectors] = ray.get([task.remote(self.name, part) for part in parts])
        except ray.exceptions.RayError as error:
            raise cluster_failed(error) from error
        return np.concatenate(vectors)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        return self._embedder.embed_query(text)


def embed(name: str, texts: list[str]) -> Vectors:
    """Embed passages on a worker."""
    return _embedder(name).embed_passages(texts)


@lru_cache(maxsize=1)
def _embedder(name: str) -> Embedder:
    """Return the embedder of a worker, which keeps the model between tasks."""
    return LocalEmbedder(name)
