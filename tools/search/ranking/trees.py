"""Boosted regression trees as plain arrays: scored here with numpy alone, whatever library has grown them."""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ARRAYS = ("roots", "feature", "threshold", "left", "right", "value")


class UnusableModel(Exception):
    """A model file that is missing, damaged, or made for other features; the message says which."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trees:
    """An ensemble: a row's score is the sum of the values of the leaves that it reaches, one in each tree.

    All nodes of all trees stand in one list; `roots` says where each tree begins. At a node a row goes left if its
    feature is at most the threshold. A leaf leads to itself. meta: what the file says of itself.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    meta: Mapping[str, Any]

    def scores(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """One score per row of features; higher is better, and only within one question comparable."""
        at = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        line = np.arange(len(rows))[:, None]
        while True:
            goes_left = rows[line, self.feature[at]] <= self.threshold[at]
            following = np.where(goes_left, self.left[at], self.right[at])
            if np.array_equal(following, at):
                return np.asarray(self.value[at].sum(axis=1, dtype=np.float64))
            at = following

    def save(self, file: Path) -> None:
        """Writes one compressed file; the same trees always make the same arrays."""
        meta = np.frombuffer(json.dumps(dict(self.meta), sort_keys=True).encode(), dtype=np.uint8)
        np.savez_compressed(file, meta=meta, **{name: getattr(self, name) for name in _ARRAYS})

    @classmethod
    def load(cls, file: Path) -> "Trees":
        """Reads a file without running anything that is in it; raises UnusableModel."""
        try:
            with np.load(file, allow_pickle=False) as arrays:
                meta = json.loads(arrays["meta"].tobytes())
                return cls(meta=meta, **{name: arrays[name] for name in _ARRAYS})
        except FileNotFoundError:
            raise UnusableModel(f"there is no {file.name}") from None
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise UnusableModel(f"{file.name} cannot be read ({error})") from error
