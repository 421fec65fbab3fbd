"""The vector index of one collection, the same for every store of vectors.

A store has our embeddings with ids only; texts stay in the catalogue. All methods block: call them in a thread.
"""

import json
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.errors import EmbedderChanged
from sleuth.tools.search.index import Index
from sleuth.tools.search.keyword_index import search_deeper
from sleuth.tools.search.retriever import Scored
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.types import Passage

MAX_EXACT = 10_000
"""Vectors, of a filter or in Postgres, up to which all are compared; beyond, a neighbor graph is searched."""


MEANINGLESS = ("blorptang fizzwuggle", "florbish queddle nank", "ghznoak paqqb", "qmrjsta brzgl", "trelk", "zyxwv")
"""Texts without a meaning. Some passages are similar to them too: how much depends on the embedder and the passages."""
MARGIN = 0.02
"""What a text must be more similar to a passage than these: none of 110 other meaningless texts was, with MiniLM."""


class VectorIndex(Index):
    """Embeddings of one collection's passages; stores its embedder too."""

    name = "vectors"

    def __init__(self, *, owner: str, collection: str, embedder: Embedder) -> None:
        self._about: dict[str, Any] = {"owner": owner, "collection": collection, "embedder": embedder.name}
        self._mark = sha256(json.dumps([owner, collection]).encode()).hexdigest()[:32]
        self._embedder = embedder
        self._was_interrupted = False

    def tidy(self) -> None:
        """Do the maintenance that is due after a change; by default nothing."""

    @abstractmethod
    def _change(self, ids: Sequence[str], vectors: NDArray[np.float32] | None, delete: Sequence[str]) -> None:
        """Add or replace vectors, None for no ids, and remove others."""

    @abstractmethod
    def _nearest(self, vector: NDArray[np.float32], k: int) -> Scored:
        """Return the nearest of all passages."""

    @abstractmethod
    def _nearest_allowed(self, vector: NDArray[np.float32], k: int, allowed: frozenset[str]) -> Scored:
        """Return the nearest of these passages, compared one by one."""

    @abstractmethod
    def _metadata(self) -> dict[str, Any]:
        """Return what is stored about the vectors."""

    def set_reached(self, seq: int) -> None:
        """Store the last journal number that may be partly applied."""
        self._was_interrupted = self.reached() > self.applied()
        super().set_reached(seq)

    def _number(self, name: str) -> int:
        return int(self._metadata().get(name, 0))

    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        """Embed and add passages, and remove ids; repeating it changes nothing.

        After an interruption, passages are first removed: a killed store may keep the former vector of an id.
        """
        vectors = self._embedder.embed_passages([index_text(passage) for passage in upsert]) if upsert else None
        if vectors is not None and self._check_dimension(vectors.shape[1]) is None:
            self._remember(dimension=vectors.shape[1])
        ids = [passage.id for passage in upsert]
        if self._was_interrupted:
            self._change([], None, ids)
        self._change(ids, vectors, delete)

    def search(self, text: str, k: int) -> Scored:
        """Return the nearest passages, as ids with cosine similarities, best first.

        Raises:
            VectorsReplaced: the vectors were replaced, or lost with their server's memory.
        """
        vector = self._embedder.embed_query(text)
        if self._check_dimension(len(vector)) is None:
            return []
        if self._allowed is None:
            return self._nearest(vector, k)
        if len(self._allowed) <= MAX_EXACT:
            return self._nearest_allowed(vector, k, self._allowed)
        return search_deeper(partial(self._nearest, vector), k, self._allowed, depth=4 * k)

    def has_similar(self, text: str) -> bool:
        """Return whether a passage is more similar to a text than passages are to meaningless ones."""
        best, *by_chance = (self.search(each, 1) for each in (text, *MEANINGLESS))
        return bool(best) and best[0][1] > max(nearest[0][1] for nearest in by_chance if nearest) + MARGIN

    def dimension(self) -> int | None:
        """Return the length of the vectors; None while the collection is empty."""
        stored = self._metadata().get("dimension")
        return None if stored is None else int(stored)

    def check_embedder(self) -> None:
        """Raise EmbedderChanged if the collection was built with another embedder."""
        built_with = str(self._metadata().get("embedder"))
        if built_with != self._embedder.name:
            raise embedder_changed(self._about["collection"], built_with, self._embedder.name)

    def _check_dimension(self, length: int) -> int | None:
        """Return the length of the stored vectors; raise EmbedderChanged if it is another one."""
        stored, name = self.dimension(), self._embedder.name
        if stored not in (None, length):
            old, new = f"{name} ({stored} numbers)", f"{name} ({length} numbers)"
            raise embedder_changed(self._about["collection"], old, new)
        return stored


def index_text(passage: Passage) -> str:
    """Return the text of a passage that is embedded: the title adds context."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


def embedder_changed(collection: str, built_with: str, present: str) -> EmbedderChanged:
    """Return the error for a collection with vectors of another embedder."""
    return EmbedderChanged(
        f"Collection {collection!r} was built with the embedder {built_with}, the present one is {present}. "
        "Set SLEUTH_EMBEDDER back, or embed everything again with `sleuth ingest --rebuild`."
    )
