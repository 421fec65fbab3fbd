"""Extraction of triples from all passages ahead of time, as a graph of one node that repeats: a batch per step.

The catalogue stores the triples of each passage as they are found, so the graph needs no checkpoints: after a kill the
same call resumes, and repeats only the calls in progress. It takes no lock: documents may come and go meanwhile.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, Any, Literal

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from sleuth.agents.model import Model
from sleuth.agents.model_calls import ModelCaller
from sleuth.graphs.core import Budget, PrivateGraph
from sleuth.graphs.ingestion.graph import first_few
from sleuth.graphs.methods.ras import extract_triples, prompt_version
from sleuth.tools.storage import MemoryArchive, TripleStats, TripleStore
from sleuth.tools.types import Passage

BATCH = 64
"""Passages of one step; SLEUTH_CONCURRENCY of them are read in parallel."""
CALLS = 2
"""Model calls for one passage: an extraction and its repair."""


@dataclass(frozen=True, kw_only=True)
class ExtractionState:
    """A position in the order of passages, and counts."""

    after: str = ""
    """The fingerprint of the last passage that was tried."""
    read: Annotated[int, add] = 0
    """Passages that were read."""
    failed: Annotated[int, add] = 0
    """Passages whose extraction failed: the next call tries them again."""
    triples: Annotated[int, add] = 0
    """Triples found in them."""
    calls: Annotated[int, add] = 0
    """Model calls, repairs included."""
    tokens: Annotated[int, add] = 0
    """Tokens of prompts and replies."""
    warnings: Annotated[list[str], first_few] = field(default_factory=list)
    """The first reasons for failures."""
    ended: bool = False
    """True if no passage is left, or the budget has no room for another call."""


class ExtractionUpdate(TypedDict, total=False):
    """State fields that the node changes."""

    after: str
    read: int
    failed: int
    triples: int
    calls: int
    tokens: int
    warnings: list[str]
    ended: bool


@dataclass(frozen=True, kw_only=True)
class ExtractionContext:
    """Dependencies of an extraction; `name` is that of the model, under which its triples are stored."""

    model: Model
    name: str
    readings: TripleStats
    store: TripleStore
    budget: Budget = field(default_factory=Budget)
    concurrency: int = 8
    started: float = field(default_factory=time.monotonic)


async def read(state: ExtractionState, runtime: Runtime[ExtractionContext]) -> ExtractionUpdate:
    """Extract triples from the next unread passages in parallel; store those of each passage when they are found."""
    context = runtime.context
    batch = await asyncio.to_thread(
        context.readings.unread,
        model=context.name,
        version=await prompt_version(),
        after=state.after,
        limit=BATCH,
    )
    shared = _SharedBudget(context, calls=state.calls, tokens=state.tokens)
    waiting = iter(batch)
    done: list[ExtractionUpdate] = []
    readers = [asyncio.create_task(_reader(waiting, shared, runtime, done)) for _ in range(context.concurrency)]
    try:
        await asyncio.gather(*readers)
    finally:
        for reader in readers:
            reader.cancel()
    ended = len(batch) < BATCH or len(done) < len(batch)
    return {**_sum(done), "after": batch[-1].fingerprint() if batch else state.after, "ended": ended}


def after_read(state: ExtractionState) -> Literal["read", "__end__"]:
    """Repeat until no passage is left."""
    return "__end__" if state.ended else "read"


def graph() -> StateGraph[ExtractionState, ExtractionContext, ExtractionState, ExtractionState]:
    """Return the uncompiled state machine."""
    builder = StateGraph(ExtractionState, context_schema=ExtractionContext)
    builder.add_node(read)
    builder.add_edge(START, "read")
    builder.add_conditional_edges("read", after_read)
    return builder


OnRead = Callable[[Mapping[str, Any]], None]


async def extract_all_triples(context: ExtractionContext, *, on_read: OnRead) -> ExtractionState:
    """Extract triples until no passage is left or the budget is used up; call `on_read` for each passage.

    Raises:
        ModelError: the server cannot be used; the triples found until then are kept.
    """
    compiled = PrivateGraph(graph()).compile(name="reading")
    values: dict[str, Any] = {}
    async for mode, event in compiled.astream(
        ExtractionState(), {"recursion_limit": 1_000_000_000}, context=context, stream_mode=["custom", "values"]
    ):
        if mode == "values":
            values = event
        else:
            on_read(event)
    return ExtractionState(**values)


class _SharedBudget:
    """The rest of the budget while several readers spend from it."""

    def __init__(self, context: ExtractionContext, *, calls: int, tokens: int) -> None:
        self._budget = context.budget
        self._started = context.started
        self._calls = calls
        self._tokens = tokens

    def take(self) -> int:
        """Reserve calls for one passage; return their number, 0 if the budget has no room."""
        budget = self._budget
        if budget.max_tokens is not None and self._tokens >= budget.max_tokens:
            return 0
        if budget.max_seconds is not None and time.monotonic() - self._started >= budget.max_seconds:
            return 0
        left = CALLS if budget.max_calls is None else min(CALLS, budget.max_calls - self._calls)
        self._calls += max(0, left)
        return max(0, left)

    def settle(self, taken: int, calls: int, tokens: int) -> None:
        """Return the calls that a passage did not need."""
        self._calls += calls - taken
        self._tokens += tokens


async def _reader(
    waiting: Iterator[Passage], shared: _SharedBudget, runtime: Runtime[ExtractionContext], done: list[ExtractionUpdate]
) -> None:
    """Read one waiting passage after another while the budget lasts."""
    while (taken := shared.take()) and (passage := next(waiting, None)) is not None:
        context = runtime.context
        caller = ModelCaller(context.model, MemoryArchive(), seed=passage.fingerprint(), limit=taken)
        found = await extract_triples(context.store, [passage], caller)
        calls = caller.calls.values()
        tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls)
        shared.settle(taken, len(calls), tokens)
        update = ExtractionUpdate(
            read=len(found),
            failed=1 - len(found),
            triples=sum(len(triples) for _, triples in found),
            calls=len(calls),
            tokens=tokens,
            warnings=[] if found else list(caller.warnings),
        )
        done.append(update)
        runtime.stream_writer(update)


def _sum(updates: list[ExtractionUpdate]) -> ExtractionUpdate:
    return ExtractionUpdate(
        read=sum(each["read"] for each in updates),
        failed=sum(each["failed"] for each in updates),
        triples=sum(each["triples"] for each in updates),
        calls=sum(each["calls"] for each in updates),
        tokens=sum(each["tokens"] for each in updates),
        warnings=[warning for each in updates for warning in each["warnings"]],
    )
