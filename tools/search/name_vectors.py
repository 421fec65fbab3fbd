"""Vectors of the names in triples, and the pairs of names that mean the same.

They are derived from the triples and stored in one file, so that no name is embedded twice. All methods block.
"""

import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search.vectors import Embedder, Vectors

SYNONYMS = 0.8
"""Cosine similarity from which two names are synonyms (HippoRAG, appendix on hyperparameters)."""
_ROWS = 512
"""Rows that are compared with all others in one multiplication."""
_STORED = np.float16
"""Type of the stored vectors; new ones are rounded to it too, so that reloading changes no result."""


@dataclass(frozen=True, slots=True)
class NameVectors:
    """Names by their numbers in ascending order, with a unit vector each.

    pairs: rows of synonyms, the lower row first, of shape (pairs, 2); similarities: their cosine similarities.
    """

    names: NDArray[np.int64]
    rows: Vectors
    pairs: NDArray[np.int32]
    similarities: NDArray[np.float32]


_EMPTY = NameVectors(
    np.empty(0, dtype=np.int64),
    np.empty((0, 0), dtype=np.float32),
    np.empty((0, 2), dtype=np.int32),
    np.empty(0, dtype=np.float32),
)


class NameVectorFile:
    """The file of one collection's name vectors; a damaged one, or one of another embedder, is made again."""

    def __init__(self, file: Path, embedder: Embedder) -> None:
        self._file = file
        self._embedder = embedder

    def update(self, names: Mapping[int, str]) -> NameVectors:
        """Embed the names that the file does not have, compare them with all others, and drop those that are gone."""
        stored = self._load()
        updated = _only(stored, names) if stored else _EMPTY
        if len(updated.names) < len(names):
            updated = self._with_new(updated, names)
        if updated is not stored and names:
            self._save(updated)
        return updated

    def prune(self, names: Mapping[int, str]) -> None:
        """Drop the names that are gone; delete a file that cannot be used."""
        stored = self._load()
        if stored is None:
            self._file.unlink(missing_ok=True)
        elif (remaining := _only(stored, names)) is not stored:
            self._save(remaining)

    def _with_new(self, stored: NameVectors, names: Mapping[int, str]) -> NameVectors:
        numbers = np.array(sorted(names), dtype=np.int64)
        new = np.isin(numbers, stored.names, invert=True)
        added = self._embedder.embed_passages([names[number] for number in numbers[new].tolist()])
        rows = np.empty((len(numbers), added.shape[1]), dtype=np.float32)
        rows[new] = added.astype(_STORED)
        if len(stored.names):
            rows[~new] = stored.rows
        moved = np.flatnonzero(~new).astype(np.int32)[stored.pairs]
        pairs, similarities = _synonyms(rows, new)
        return NameVectors(
            numbers, rows, np.concatenate([moved, pairs]), np.concatenate([stored.similarities, similarities])
        )

    def _load(self) -> NameVectors | None:
        try:
            with np.load(self._file, allow_pickle=False) as stored:
                if str(stored["embedder"]) != self._embedder.name:
                    return None
                return NameVectors(
                    stored["names"], stored["rows"].astype(np.float32), stored["pairs"], stored["similarities"]
                )
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def _save(self, vectors: NameVectors) -> None:
        """Replace the file; without space for it, the next process computes the vectors again."""
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=self._file.parent, suffix=".npz", delete=False) as draft:
                np.savez(
                    draft,
                    embedder=np.array(self._embedder.name),
                    names=vectors.names,
                    rows=vectors.rows.astype(_STORED),
                    pairs=vectors.pairs,
                    similarities=vectors.similarities,
                )
            Path(draft.name).replace(self._file)


def _only(vectors: NameVectors, names: Mapping[int, str]) -> NameVectors:
    """Return the vectors of those of the names that it has; itself if it has no others."""
    is_named = np.array([number in names for number in vectors.names.tolist()], dtype=bool)
    if is_named.all():
        return vectors
    places = np.cumsum(is_named, dtype=np.int32) - 1
    both = is_named[vectors.pairs].all(axis=1)
    return NameVectors(
        vectors.names[is_named], vectors.rows[is_named], places[vectors.pairs[both]], vectors.similarities[both]
    )


def _synonyms(rows: Vectors, new: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the pairs of which at least one is new, with their similarities."""
    pairs, similarities = [_EMPTY.pairs], [_EMPTY.similarities]
    added = np.flatnonzero(new).astype(np.int32)
    for part in (added[start : start + _ROWS] for start in range(0, len(added), _ROWS)):
        similar = rows[part] @ rows.T
        at, other = np.nonzero(similar >= SYNONYMS)
        one = part[at]
        first = (one < other) | ~new[other]  # a pair of two new names occurs twice
        first &= one != other
        pairs.append(np.sort(np.stack([one, other.astype(np.int32)], axis=1)[first], axis=1))
        similarities.append(similar[at, other][first])
    return np.concatenate(pairs), np.concatenate(similarities)
