"""Analysis of passages for the indexes: stems and names, in worker processes where there are many.

It takes most of the processor time of an ingest without vectors. All methods block: call them in a thread.
"""

from collections import ChainMap, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from sleuth.tools.text.names import PassageNames, find_names
from sleuth.tools.text.stemming import KeywordTerms, find_terms
from sleuth.tools.types import Passage

_CHUNK = 32
"""Passages of one call of a worker process."""
_MIN_CHARACTERS = 100_000
"""Shorter texts are analyzed in this process: a worker process takes a second to start."""

Submit = Callable[[dict[str, Any]], "Future[dict[str, Any]]"]
"""Has a worker process run `sleuth.tools.text.analysis.analyze`; the result is empty if the process fails."""


class PassageAnalyzer:
    """Analyzes passages, with the same results in this process and in worker processes."""

    def __init__(self) -> None:
        # Of the batch that is indexed and of the one that is read meanwhile.
        self._started: deque[dict[Passage, tuple[Future[dict[str, Any]], int]]] = deque(maxlen=2)

    def start(self, submit: Submit, passages: Sequence[Passage], detected: Sequence[str | None] = ()) -> None:
        """Have worker processes analyze passages that will be indexed next, if they are long.

        Args:
            submit: Starts the analysis in a worker process.
            passages: The passages.
            detected: The language of each passage if it is known, see `find_terms`; the detector of a worker process
                takes a second to load.
        """
        if sum(len(passage.text) for passage in passages) < _MIN_CHARACTERS:
            return
        started: dict[Passage, tuple[Future[dict[str, Any]], int]] = {}
        for start in range(0, len(passages), _CHUNK):
            part = passages[start : start + _CHUNK]
            rows = [(passage.document_id, passage.title, passage.text) for passage in part]
            call = submit({"rows": rows, "detected": detected[start : start + _CHUNK]})
            started |= {passage: (call, at) for at, passage in enumerate(part)}
        self._started.append(started)

    def terms(self, passages: Sequence[Passage]) -> list[KeywordTerms]:
        """Return what the keyword index stores of each passage."""
        found = self._results(passages)
        return find_terms(passages) if found is None else [KeywordTerms(*terms) for terms, _ in found]

    def names(self, passages: Sequence[Passage]) -> list[PassageNames]:
        """Return what the entity graph stores of each passage."""
        found = self._results(passages)
        if found is None:
            return find_names(passages)
        return [PassageNames(dict(aliases), mentions) for _, (aliases, mentions) in found]

    def _results(self, passages: Sequence[Passage]) -> list[Any] | None:
        """Wait for the results of worker processes; return None if one was not started, or failed."""
        calls = ChainMap(*self._started)
        try:
            return [calls[passage][0].result()["found"][calls[passage][1]] for passage in passages]
        except KeyError:
            return None
