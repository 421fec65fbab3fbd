"""The trained ranking of candidates: boosted regression trees as plain arrays, evaluated with numpy alone."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search.entity_graph import Candidate, QueryTerms
from sleuth.tools.search.ranking.features import matrix

_ARRAYS = ("roots", "feature", "threshold", "left", "right", "value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Trees:
    """An ensemble: a row's score is the sum of the values of the leaves that it reaches, one in each tree.

    All nodes of all trees are in one list; `roots` has the start of each tree. At a node a row goes left if its feature
    is at most the threshold. A leaf points to itself. meta: the file's metadata.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    meta: Mapping[str, Any]

    def scores(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return one score per row of features; higher is better, comparable only within one question."""
        at = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        line = np.arange(len(rows))[:, None]
        while True:
            goes_left = rows[line, self.feature[at]] <= self.threshold[at]
            following = np.where(goes_left, self.left[at], self.right[at])
            if np.array_equal(following, at):
                return np.asarray(self.value[at].sum(axis=1, dtype=np.float64))
            at = following

    def save(self, file: Path) -> None:
        """Write one compressed file; the same trees always give the same arrays."""
        meta = np.frombuffer(json.dumps(dict(self.meta), sort_keys=True).encode(), dtype=np.uint8)
        np.savez_compressed(file, meta=meta, **{name: getattr(self, name) for name in _ARRAYS})

    @classmethod
    def load(cls, file: Path) -> "Trees":
        """Load a file without unpickling."""
        with np.load(file, allow_pickle=False) as arrays:
            meta = json.loads(arrays["meta"].tobytes())
            return cls(meta=meta, **{name: arrays[name] for name in _ARRAYS})


MODEL = Path(__file__).with_name("model.npz")
SPREAD = 30
"""Number of the best candidates that are reranked for coverage."""
COVER = 2.4
"""Bonus for covering all words of a question that earlier passages lack; trained scores span about 10."""


@lru_cache(maxsize=4)
def load(file: Path = MODEL) -> Trees:
    """Return the cached model."""
    return Trees.load(file)


def rank(asked: QueryTerms, candidates: Sequence[Candidate], trees: Trees) -> list[Candidate]:
    """Return the candidates with trained scores, best first; new coverage of the question raises a candidate."""
    if not candidates:
        return []
    rows, _ = matrix(asked, candidates)
    for candidate, score in zip(candidates, trees.scores(rows), strict=True):
        candidate.score = float(score)
    ranked = sorted(candidates, key=lambda each: (-each.score, each.passage.id))
    return [*_spread(asked, ranked[:SPREAD]), *ranked[SPREAD:]]


def _spread(asked: QueryTerms, ranked: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield candidates greedily, by score and by the terms of the question that earlier ones lack."""
    left, missing = list(ranked), frozenset(asked.weights)
    while left:
        gains = {each.passage.id: COVER * asked.share(each.read.found & missing) for each in left}
        best = min(left, key=lambda each: (-each.score - gains[each.passage.id], each.passage.id))
        left.remove(best)
        missing -= best.read.found
        best.score += gains[best.passage.id]
        yield best
