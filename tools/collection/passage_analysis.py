"""Analysis of passages for the indexes: stems, names and languages, in worker processes where there are many.

It takes most of the processor time of an ingest without vectors. All methods block: call them in a thread.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from sleuth.tools.documents import Bounds, WorkerError, Workers
from sleuth.tools.search.entity_graph import PassageNames, find_names
from sleuth.tools.search.keyword_index import KeywordTerms, find_terms
from sleuth.tools.text import detect_language
from sleuth.tools.types import Passage

Kind = Literal["terms", "names", "languages"]

_CHUNK = 32
"""Passages of one call of a worker process."""
_MIN_CHARACTERS = 100_000
"""Shorter texts are analyzed in this process: a worker process takes a second to start."""
_LANGUAGE_CHARACTERS = 2_000
"""Beginning of a text that is sent for the detection of its language, which reads no more."""


class PassageAnalyzer:
    """Analyzes passages, with the same results in this process and in worker processes.

    Attributes:
        is_parallel: whether worker processes, if there are any, are used; the caller who sets it ends them.
    """

    def __init__(self, workers: Workers | None = None) -> None:
        self.is_parallel = False
        self._workers = workers

    def stop(self) -> None:
        """End the worker processes, and use no others."""
        self.is_parallel = False
        if self._workers:
            self._workers.stop()

    def terms(self, passages: Sequence[Passage]) -> list[KeywordTerms]:
        """Return what the keyword index stores of each passage."""
        if (workers := self._workers_for(passages)) is None:
            return find_terms(passages)
        return [KeywordTerms(*row) for row in _call(workers, "terms", _rows(passages))]

    def names(self, passages: Sequence[Passage]) -> list[PassageNames]:
        """Return what the entity graph stores of each passage."""
        if (workers := self._workers_for(passages)) is None:
            return find_names(passages)
        return [_parse_names(row) for row in _call(workers, "names", _rows(passages))]

    def languages(self, texts: Sequence[str], *, characters: int) -> list[str]:
        """Return the language of each text, empty if it is uncertain; `characters` is the size of the documents."""
        if (workers := self._workers_worth(characters)) is None:
            return [detect_language(text) or "" for text in texts]
        return list(_call(workers, "languages", [text[:_LANGUAGE_CHARACTERS] for text in texts]))

    def _workers_for(self, passages: Sequence[Passage]) -> Workers | None:
        return self._workers_worth(sum(len(passage.text) for passage in passages))

    def _workers_worth(self, characters: int) -> Workers | None:
        """Return the worker processes; None if this process is to do the work."""
        return self._workers if self.is_parallel and characters >= _MIN_CHARACTERS else None


def _call(workers: Workers, kind: Kind, rows: list[Any]) -> Iterator[Any]:
    """Yield the results for rows; those of a worker that fails are computed in this process."""
    calls = [{"kind": kind, "rows": rows[start : start + _CHUNK]} for start in range(0, len(rows), _CHUNK)]
    futures = [workers.submit_analysis(call) for call in calls]
    for call, future in zip(calls, futures, strict=True):
        try:
            yield from future.result()["found"]
        except WorkerError:
            yield from analyze(call)["found"]


def analyze(given: dict[str, Any], _bounds: Bounds | None = None) -> dict[str, Any]:
    """Return the results for the rows of a call, as JSON."""
    kinds: dict[Kind, Callable[[Sequence[Any]], list[Any]]] = {
        "terms": lambda rows: find_terms(_passages(rows)),
        "names": lambda rows: [_format_names(names) for names in find_names(_passages(rows))],
        "languages": lambda texts: [detect_language(text) or "" for text in texts],
    }
    return {"found": kinds[given["kind"]](given["rows"])}


def _rows(passages: Sequence[Passage]) -> list[list[str]]:
    return [[passage.document_id, passage.title, passage.text] for passage in passages]


def _passages(rows: Sequence[Sequence[str]]) -> list[Passage]:
    return [
        Passage(id="", document_id=document_id, title=title, text=text, start=0, end=len(text))
        for document_id, title, text in rows
    ]


def _format_names(names: PassageNames) -> list[Any]:
    return [list(names.aliases.items()), array("q", names.mentions).tobytes().hex()]


def _parse_names(row: list[Any]) -> PassageNames:
    aliases, mentions = row
    return PassageNames(dict(aliases), array("q", bytes.fromhex(mentions)))
