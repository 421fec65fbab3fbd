"""Progress of an ingest, and its report."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.types import StreamWriter

from sleuth.tools.collection import OnIndexed
from sleuth.tools.search import IndexName


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestProgress:
    """Counts since the start of this call; `failure` is the reason why a file has just failed."""

    files: int = 0
    total: int = 0
    stored: int = 0
    embedded: int = 0
    failure: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestReport:
    """Result of an ingest; counts include the work before an interruption.

    `warnings` contains the first failures, `passed_over` all files that were not tried, each with the reason.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: int = 0
    passages: int = 0
    seconds: float = 0.0
    resumed: bool = False
    warnings: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


OnProgress = Callable[[IngestProgress], None]


class ProgressReporter:
    """Adds up the events of the nodes and passes the sums to a callback."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._now = IngestProgress()
        self._on_progress = on_progress

    def show(self, event: dict[str, Any]) -> None:
        """Add the passages of an event to the sums; its other values replace the present ones."""
        sums = {name: getattr(self._now, name) + event[name] for name in ("stored", "embedded") if name in event}
        self._now = replace(self._now, **({"failure": None} | event | sums))
        if self._on_progress is not None:
            self._on_progress(self._now)


def count_embedded(writer: Callable[[dict[str, Any]], None] | StreamWriter, slowest: IndexName) -> OnIndexed:
    """Return a callback for indexing; a passage counts when it is in the slowest index, which is updated last."""

    def on_indexed(index: IndexName, passages: int) -> None:
        if index == slowest:
            writer({"embedded": passages})

    return on_indexed
