"""Pages of questions under evaluation."""

import numpy as np
from hashing_embedder import HashingEmbedder

from sleuth.studio.evaluation.data.page_cache import CachedEmbedder


def test_a_passage_is_embedded_once_and_keeps_its_vector() -> None:
    inner, fresh = HashingEmbedder(), HashingEmbedder()
    remembering = CachedEmbedder(inner)
    remembering.embed_passages(["a weir", "a fair"])
    found = remembering.embed_passages(["a fair", "a tower", "a weir", "a fair"])
    assert inner.embedded == ["a weir", "a fair", "a tower"]
    assert np.array_equal(found, fresh.embed_passages(["a fair", "a tower", "a weir", "a fair"]))
    assert remembering.name == inner.name
    assert np.array_equal(remembering.embed_query("a weir"), fresh.embed_query("a weir"))
