"""Embedding of passages on a Ray cluster.

All methods block: call them in a thread.
"""

from functools import lru_cache

import numpy as np

from sleuth.tools.cluster.connection import RETRIES, connect
from sleuth.tools.errors import StoreError
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.search.vectors.embedder import Vectors, make_embedder
from sleuth.tools.settings import Settings

_LEAST = 16
"""Passages of a task at least: fewer are not worth the transfer."""


@lru_cache(maxsize=1)
def _embedder(settings: str) -> Embedder:
    """Return the embedder of a worker, which keeps the model between tasks."""
    return make_embedder(Settings.model_validate_json(settings))


def embed(settings: str, texts: list[str]) -> Vectors:
    """Embed passages on a worker."""
    return _embedder(settings).embed_passages(texts)


class RayEmbedder:
    """An embedder whose passages are embedded on the workers of a cluster, and whose questions in this process."""

    def __init__(self, address: str, embedder: Embedder, settings: Settings) -> None:
        """Set the cluster; the first passages connect.

        Args:
            address: see `connect`.
            embedder: the embedder of questions, the same as that of the settings.
            settings: from which each worker makes its embedder.
        """
        self._address = address
        self._embedder, self.name = embedder, embedder.name
        wanted = settings.model_dump(mode="json", include={"home", "embedder"})
        self._settings = Settings.model_validate(wanted).model_dump_json(include={"home", "embedder"})

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Embed passages on the cluster.

        Raises:
            UsageError: the extra `ray` is not installed, or no cluster answers.
            StoreError: embedding fails for another reason than a killed worker.
        """
        ray = connect(self._address)
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(embed)
        size = max(_LEAST, -(-len(texts) // max(1, int(ray.cluster_resources().get("CPU", 1)))))
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        try:
            vectors: list[Vectors] = ray.get([task.remote(self._settings, part) for part in parts])
        except ray.exceptions.RayError as error:
            raise StoreError(f"The Ray cluster failed: {error}. Run the command again to resume.") from error
        return np.concatenate(vectors)

    def embed_query(self, text: str) -> Vectors:
        """Embed a question in this process."""
        return self._embedder.embed_query(text)
