"""What an ingest tells while it goes on, and when it is done."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.types import StreamWriter

from sleuth.tools.collection import OnIndexed
from sleuth.tools.search import IndexName


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestProgress:
    """How far it is, since this call began; `failure` is the reason of a file that has just failed."""

    files: int = 0
    total: int = 0
    stored: int = 0
    embedded: int = 0
    failure: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestReport:
    """What an ingest came to; counts include what was done before an interruption.

    `warnings` holds the first failures, `passed_over` all files that were not tried, each with the reason.
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


class Board:
    """Adds up what the nodes tell, and shows it to whoever watches."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._now = IngestProgress()
        self._on_progress = on_progress

    def show(self, told: dict[str, Any]) -> None:
        """Passages add up; everything else is replaced."""
        sums = {name: getattr(self._now, name) + told[name] for name in ("stored", "embedded") if name in told}
        self._now = replace(self._now, **({"failure": None} | told | sums))
        if self._on_progress is not None:
            self._on_progress(self._now)


def tell(writer: Callable[[dict[str, Any]], None] | StreamWriter, slowest: IndexName) -> OnIndexed:
    """What a library calls as it indexes; a passage counts when it is in the slowest index, which comes last."""

    def told(index: IndexName, passages: int) -> None:
        if index == slowest:
            writer({"embedded": passages})

    return told
