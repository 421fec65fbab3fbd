"""A batch of vectors that was in progress when sleuth was killed is compared whole at the next start."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pytest
from entries import entry
from hashing_embedder import HashingEmbedder
from numpy.typing import NDArray

from sleuth.tools.errors import StoreDamaged
from sleuth.tools.search.vectors.index import Found, VectorIndex

PASSAGES = [entry(name, text).passages[0] for name, text in (("a", "a stone bridge"), ("b", "a water mill"))]


class Store(VectorIndex):
    """Vectors in memory; `stale`: ids whose former vector stays until they are deleted, `lost`: ids never written."""

    def __init__(self, *, stale: Sequence[str] = (), lost: Sequence[str] = ()) -> None:
        super().__init__(owner="local", collection="default", embedder=HashingEmbedder())
        self.vectors: dict[str, NDArray[np.float32]] = {}
        self.known: dict[str, Any] = {}
        self.stale, self.lost = set(stale), lost
        self.writes = 0

    def _change(self, ids: Sequence[str], vectors: NDArray[np.float32] | None, delete: Sequence[str]) -> None:
        self.writes += 1
        for id_ in delete:
            self.vectors.pop(id_, None)
            self.stale.discard(id_)
        for id_, vector in zip(ids, vectors if vectors is not None else (), strict=True):
            if id_ not in self.stale and id_ not in self.lost:
                self.vectors[id_] = vector

    def _has(self, ids: Sequence[str], vectors: NDArray[np.float32]) -> bool:
        return all(np.array_equal(self.vectors.get(id_), vector) for id_, vector in zip(ids, vectors, strict=True))

    def _metadata(self) -> dict[str, Any]:
        return self.known

    def _remember(self, **values: int) -> None:
        self.known |= values

    def count(self) -> int:
        return len(self.vectors)

    def ids(self) -> set[str]:
        return set(self.vectors)

    def tidy(self) -> bool:
        return False

    def close(self) -> None: ...

    def refresh(self) -> None: ...

    def clear(self) -> None: ...

    def replace_by(self, other: Self) -> None: ...

    def _search(self, vector: NDArray[np.float32], k: int, dimension: int | None) -> Found:
        return []

    def _nearest(self, vector: NDArray[np.float32], k: int) -> Found:
        return []

    def _nearest_allowed(self, vector: NDArray[np.float32], k: int, allowed: frozenset[str]) -> Found:
        return []


def interrupted(store: Store) -> Store:
    """Have the store hold other vectors of the passages, and a batch that was begun and not ended."""
    store.vectors = {passage.id: np.zeros(512, dtype=np.float32) for passage in PASSAGES}
    store.set_reached(7)
    store.set_reached(7)
    return store


@pytest.mark.parametrize("stale", [[PASSAGES[0].id], [passage.id for passage in PASSAGES]])
def test_former_vectors_of_an_interrupted_batch_are_replaced(stale: list[str]) -> None:
    store = interrupted(Store(stale=stale))
    store.apply(upsert=PASSAGES, delete=[])
    assert store.writes == 3 and all(vector.any() for vector in store.vectors.values())


def test_intact_batch_is_written_once_after_an_interruption() -> None:
    store = interrupted(Store())
    store.apply(upsert=PASSAGES, delete=[])
    assert store.writes == 1


def test_vectors_that_cannot_be_repaired_are_reported() -> None:
    store = interrupted(Store(lost=[PASSAGES[1].id]))
    with pytest.raises(StoreDamaged, match="--rebuild"):
        store.apply(upsert=PASSAGES, delete=[])


def test_batch_after_a_completed_one_is_not_compared() -> None:
    store = Store(lost=[PASSAGES[1].id])
    store.set_applied(7)
    store.set_reached(8)
    store.apply(upsert=PASSAGES, delete=[])
    assert store.writes == 1
