"""Analysis of passages for the indexes: stems and names, in worker processes where there are many.

It takes most of the processor time of an ingest without vectors. All methods block: call them in a thread.
"""

from collections.abc import Sequence
from typing import Any

from sleuth.tools.documents.parallel_reading import Workers
from sleuth.tools.documents.worker import WorkerError
from sleuth.tools.text import KeywordTerms, PassageNames, find_names, find_terms
from sleuth.tools.text.analysis import Analysis, analyze, parse_names
from sleuth.tools.types import Passage

_CHUNK = 32
"""Passages of one call of a worker process."""
_MIN_CHARACTERS = 100_000
"""Shorter texts are analyzed in this process: a worker process takes a second to start."""


class PassageAnalyzer:
    """Analyzes passages, with the same results in this process and in worker processes.

    Attributes:
        is_parallel: whether worker processes, if there are any, are used; the caller who sets it ends them.
    """

    def __init__(self, workers: Workers | None = None) -> None:
        self.is_parallel = False
        self._workers = workers

    def terms(self, passages: Sequence[Passage]) -> list[KeywordTerms]:
        """Return what the keyword index stores of each passage."""
        if (found := self._analyze("terms", passages)) is None:
            return find_terms(passages)
        return [KeywordTerms(*row) for row in found]

    def names(self, passages: Sequence[Passage]) -> list[PassageNames]:
        """Return what the entity graph stores of each passage."""
        if (found := self._analyze("names", passages)) is None:
            return find_names(passages)
        return [parse_names(row) for row in found]

    def _analyze(self, kind: Analysis, passages: Sequence[Passage]) -> list[Any] | None:
        """Return the results of worker processes; None if this process is to do the work."""
        is_worth = sum(len(passage.text) for passage in passages) >= _MIN_CHARACTERS
        if not (self._workers and self.is_parallel and is_worth):
            return None
        rows = [(passage.document_id, passage.title, passage.text) for passage in passages]
        calls = [{"kind": kind, "rows": rows[start : start + _CHUNK]} for start in range(0, len(rows), _CHUNK)]
        futures = [self._workers.submit_analysis(call) for call in calls]
        found: list[Any] = []
        for call, future in zip(calls, futures, strict=True):
            try:
                reply = future.result()
            except WorkerError:
                reply = analyze(call)
            found += reply["found"]
        return found
