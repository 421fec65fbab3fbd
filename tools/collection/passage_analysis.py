"""Analysis of passages for the indexes: stems and names, in worker processes where there are many.

It takes most of the processor time of an ingest without vectors. All methods block: call them in a thread.
"""

from collections import ChainMap, deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from sleuth.tools.collection.ray_cluster import RayWorkers
from sleuth.tools.documents.parallel_reading import LocalWorkers
from sleuth.tools.documents.worker import WorkerError
from sleuth.tools.text.analysis import Analysis, analyze, parse_names
from sleuth.tools.text.names import PassageNames, find_names
from sleuth.tools.text.stemming import KeywordTerms, find_terms
from sleuth.tools.types import Passage

_CHUNK = 32
"""Passages of one call of a worker process."""
_MIN_CHARACTERS = 100_000
"""Shorter texts are analyzed in this process: a worker process takes a second to start."""

Workers: TypeAlias = LocalWorkers | RayWorkers
"""Worker processes of an ingest."""
_Row = tuple[str, ...]
_Key = tuple[Analysis, _Row]


@dataclass(frozen=True)
class _Call:
    """A call of a worker process; if that fails, this process does its work."""

    given: dict[str, Any]
    future: "Future[dict[str, Any]]"

    @cached_property
    def found(self) -> list[Any]:
        """Wait for the results, one for each row."""
        try:
            reply = self.future.result()
        except WorkerError:
            reply = analyze(self.given)
        return list(reply["found"])


class PassageAnalyzer:
    """Analyzes passages, with the same results in this process and in worker processes.

    Attributes:
        is_parallel: whether worker processes, if there are any, are used; the caller who sets it ends them.
    """

    def __init__(self, workers: Workers | None = None) -> None:
        self.is_parallel = False
        self._workers = workers
        # Of the batch that is indexed and of the one that is read meanwhile.
        self._started: deque[dict[_Key, tuple[_Call, int]]] = deque(maxlen=2)

    def start(self, passages: Sequence[Passage], detected: Sequence[str | None] = ()) -> None:
        """Have worker processes analyze passages that will be indexed next; without them, do nothing.

        Args:
            passages: The passages.
            detected: The language of each passage if it is known, see `find_terms`.
        """
        if workers := self._workers_for(passages):
            rows = _rows(passages)
            self._started.append(dict([*_submit(workers, "terms", rows, detected), *_submit(workers, "names", rows)]))

    def terms(self, passages: Sequence[Passage]) -> list[KeywordTerms]:
        """Return what the keyword index stores of each passage."""
        if (found := self._found("terms", passages)) is None:
            return find_terms(passages)
        return [KeywordTerms(*row) for row in found]

    def names(self, passages: Sequence[Passage]) -> list[PassageNames]:
        """Return what the entity graph stores of each passage."""
        if (found := self._found("names", passages)) is None:
            return find_names(passages)
        return [parse_names(row) for row in found]

    def _found(self, kind: Analysis, passages: Sequence[Passage]) -> list[Any] | None:
        """Return the results of worker processes; None if this process is to do the work."""
        rows = _rows(passages)
        places = ChainMap(*self._started)
        if any((kind, row) not in places for row in rows):
            if (workers := self._workers_for(passages)) is None:
                return None
            places = ChainMap(dict(_submit(workers, kind, rows)))
        return [call.found[at] for call, at in (places[kind, row] for row in rows)]

    def _workers_for(self, passages: Sequence[Passage]) -> Workers | None:
        """Return the worker processes; None if this process is to do the work."""
        is_worth = sum(len(passage.text) for passage in passages) >= _MIN_CHARACTERS
        return self._workers if self.is_parallel and is_worth else None


def _submit(
    workers: Workers, kind: Analysis, rows: Sequence[_Row], detected: Sequence[str | None] = ()
) -> list[tuple[_Key, tuple[_Call, int]]]:
    """Start calls for rows; return where the result of each row will be."""
    places = []
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        given = {"kind": kind, "rows": part, "detected": detected[start : start + _CHUNK]}
        call = _Call(given, workers.submit_analysis(given))
        places += [((kind, row), (call, at)) for at, row in enumerate(part)]
    return places


def _rows(passages: Sequence[Passage]) -> list[_Row]:
    return [(passage.document_id, passage.title, passage.text) for passage in passages]
