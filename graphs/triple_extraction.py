"""Extraction of triples from all passages ahead of time, a batch after the other.

The catalogue stores the triples of each passage as they are found: after a kill the same call resumes, and repeats only
the calls in progress. It takes no lock: documents may come and go meanwhile.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields

from langgraph.func import entrypoint

from sleuth.agents.model import Model
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.tracing import traced
from sleuth.graphs.methods.ras.triple_graph import extract_triples, prompt_version
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.storage.triples import SqlTriples
from sleuth.tools.types import Passage

BATCH = 64
"""Passages of one batch; SLEUTH_CONCURRENCY of them are read in parallel."""
MAX_WARNINGS = 20
CALLS = 2
"""Model calls for one passage: an extraction and its repair."""


@dataclass(frozen=True, kw_only=True)
class ExtractionReport:
    """Counts of an extraction, and the first reasons for failures. The next call tries failed passages again."""

    read: int = 0
    failed: int = 0
    triples: int = 0
    calls: int = 0
    tokens: int = 0
    warnings: list[str] = field(default_factory=list)

    def __add__(self, other: "ExtractionReport") -> "ExtractionReport":
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return ExtractionReport(**sums | {"warnings": sums["warnings"][:MAX_WARNINGS]})


OnRead = Callable[[ExtractionReport], None]


@dataclass(kw_only=True)
class Extraction:
    """An extraction of triples with a model into its store; `on_read` is called for each passage."""

    model: Model
    store: SqlTriples
    on_read: OnRead
    budget: Budget = field(default_factory=Budget)
    concurrency: int = 8
    report: ExtractionReport = field(default_factory=ExtractionReport, init=False)
    _started: float = field(default_factory=time.monotonic, init=False)
    _reserved: int = field(default=0, init=False)

    async def run(self) -> ExtractionReport:
        """Extract triples until no passage is left or the budget is used up.

        Raises:
            ModelError: the server cannot be used; the triples found until then are kept.
        """
        version = await prompt_version()
        # Model calls are tasks of LangGraph. One graph for each batch: a graph keeps its tasks in memory until it ends.
        read = entrypoint()(self.read)
        after, ended = "", False
        while not ended:
            batch = await asyncio.to_thread(self.store.unread, version=version, after=after, limit=BATCH)
            ended = len(batch) < BATCH
            if batch:
                after = batch[-1].fingerprint()
                ended = bool(await read.ainvoke(batch, traced(None, "off"))) or ended
        return self.report

    async def read(self, batch: list[Passage]) -> bool:
        """Read passages in parallel; return whether some are left, since the budget has no room for them."""
        waiting = deque(batch)
        readers = [asyncio.create_task(self._read_all(waiting)) for _ in range(self.concurrency)]
        try:
            await asyncio.gather(*readers)
        finally:
            for reader in readers:
                reader.cancel()
        return bool(waiting)

    async def _read_all(self, waiting: deque[Passage]) -> None:
        """Read one waiting passage after another while the budget lasts; store its triples when they are found."""
        while waiting and (allowed := self._allowed_calls()):
            passage = waiting.popleft()
            self._reserved += allowed
            caller = ModelCaller(self.model, MemoryArchive(), seed=passage.fingerprint(), limit=allowed)
            extracted = await extract_triples(self.store, [passage], caller)
            self._reserved -= allowed
            calls = caller.calls.values()
            one = ExtractionReport(
                read=len(extracted),
                failed=1 - len(extracted),
                triples=sum(len(triples) for _, triples in extracted),
                calls=len(calls),
                tokens=sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls),
                warnings=[] if extracted else list(caller.warnings),
            )
            self.report += one
            self.on_read(one)

    def _allowed_calls(self) -> int:
        """Return the calls that one more passage may need; 0 if the budget has no room."""
        budget, report = self.budget, self.report
        if budget.max_tokens is not None and report.tokens >= budget.max_tokens:
            return 0
        if budget.max_seconds is not None and time.monotonic() - self._started >= budget.max_seconds:
            return 0
        if budget.max_calls is None:
            return CALLS
        return max(0, min(CALLS, budget.max_calls - report.calls - self._reserved))
