"""Documents that are almost the same: most of their runs of five words are equal.

Each document has a sketch: its runs with the smallest hashes (bottom-k sketch, Broder 1997). Pairs of similar sketches
are compared by all their runs, so a reported similarity is not an estimate.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from sleuth.tools.storage.catalogue import Catalogue, Listed

LEAST = 0.8
"""The least similarity of near-duplicates: the share of their runs of words that both have (Jaccard)."""
_RUN = 5
_SKETCH = 128
_MARGIN = 0.2
"""How much less similar sketches may be than their documents: over five standard deviations."""
_BLOCK, _PAGE = 256, 500
_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|\w+")
_POWERS = np.array([0x9E3779B97F4A7C15**at % 2**64 for at in range(_RUN)], dtype=np.uint64)

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True, slots=True)
class DuplicateGroup:
    """Ids of near-duplicates: the first ingested one, then those like it, by id; and their least similarity to it."""

    documents: tuple[str, ...]
    similarity: float


def find_duplicates(catalogue: Catalogue) -> list[DuplicateGroup]:
    """Return the groups of near-duplicate documents, the most similar ones first, then by id; blocks."""
    listed = (document for document in _all(catalogue) if document.passages)
    documents = [document.id for document in sorted(listed, key=lambda document: (document.added_at, document.id))]

    @lru_cache(maxsize=2 * _BLOCK)
    def runs(at: int) -> Hashes:
        return hash_runs(catalogue.get_document(documents[at]).text)

    alike: dict[int, dict[str, float]] = {}
    leaving: set[int] = set()
    for first, other in sorted(_candidates([runs(at)[:_SKETCH].copy() for at in range(len(documents))])):
        if not leaving & {first, other} and (similarity := similarity_of(runs(first), runs(other))) >= LEAST:
            alike.setdefault(first, {})[documents[other]] = similarity
            leaving.add(other)
    groups = [
        DuplicateGroup(documents=(documents[first], *sorted(others)), similarity=min(others.values()))
        for first, others in alike.items()
    ]
    return sorted(groups, key=lambda group: (-group.similarity, group.documents))


def _all(catalogue: Catalogue) -> Iterator[Listed]:
    after = ""
    while page := catalogue.list_documents(limit=_PAGE, after=after):
        yield from page
        after = page[-1].id


def _candidates(sketches: list[Hashes]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of documents whose sketches are similar."""
    from scipy.sparse import csr_array

    sizes = np.array([len(sketch) for sketch in sketches])
    if not len(sizes):
        return
    _, columns = np.unique(np.concatenate(sketches), return_inverse=True)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    matrix = csr_array((np.ones(len(columns), dtype=np.int32), columns, bounds))
    for begin in range(0, len(sketches), _BLOCK):
        shared = (matrix[begin : begin + _BLOCK] @ matrix.T).tocoo()
        first = shared.row + begin
        least = (LEAST - _MARGIN) * np.maximum(sizes[first], sizes[shared.col])
        chosen = (first < shared.col) & (shared.data >= least)
        yield from zip(first[chosen].tolist(), shared.col[chosen].tolist(), strict=True)


def hash_runs(text: str) -> Hashes:
    """Return the hashes of all runs of five words, or of the only shorter one, sorted; case and punctuation do not
    count.
    """
    words = _WORD.findall(text.casefold())
    marks = np.array([_hash(word) for word in words] or [0], dtype=np.uint64)
    marks = np.pad(marks, (0, max(0, _RUN - len(marks))))
    windows = np.lib.stride_tricks.sliding_window_view(marks, _RUN)
    return np.unique((windows * _POWERS).sum(axis=1, dtype=np.uint64))


@lru_cache(maxsize=1 << 17)
def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=8).digest())


def similarity_of(one: Hashes, other: Hashes) -> float:
    """Return the share of the runs of two documents that both have."""
    both = len(np.intersect1d(one, other, assume_unique=True))
    return both / (len(one) + len(other) - both)
