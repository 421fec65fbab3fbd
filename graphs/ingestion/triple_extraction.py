"""Reading passages for their triples ahead of time, as a state machine: batch after batch, until none is left.

The catalogue holds what was read, passage by passage, so nothing else has to be kept: after a kill the same call goes
on where it was, and only the calls in flight are made again. It takes no lock: documents may come and go meanwhile.
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
from sleuth.tools.storage import MemoryArchive, Readings, TripleStore
from sleuth.tools.types import Passage

BATCH = 64
"""Passages that a step takes; so many are read side by side as SLEUTH_CONCURRENCY says."""
CALLS = 2
"""What a passage may take: a reading and its repair."""


@dataclass(frozen=True, kw_only=True)
class ReadingState:
    """A place in the order of passages, and counts."""

    after: str = ""
    """The fingerprint of the last passage that was tried."""
    read: Annotated[int, add] = 0
    """Passages that were read."""
    failed: Annotated[int, add] = 0
    """Passages whose reading failed: the next call tries them again."""
    triples: Annotated[int, add] = 0
    """What was found in them."""
    calls: Annotated[int, add] = 0
    """Model calls, repairs included."""
    tokens: Annotated[int, add] = 0
    """Tokens of prompts and replies."""
    warnings: Annotated[list[str], first_few] = field(default_factory=list)
    """The first reasons for failures."""
    ended: bool = False
    """Whether nothing is left to read, or the budget has no room for more."""


class ReadingUpdate(TypedDict, total=False):
    """What the node changes."""

    after: str
    read: int
    failed: int
    triples: int
    calls: int
    tokens: int
    warnings: list[str]
    ended: bool


@dataclass(frozen=True, kw_only=True)
class ReadingContext:
    """What a run needs and its state cannot hold; `name` is the model's, under which its triples are kept."""

    model: Model
    name: str
    readings: Readings
    store: TripleStore
    budget: Budget = field(default_factory=Budget)
    concurrency: int = 8
    started: float = field(default_factory=time.monotonic)


async def read(state: ReadingState, runtime: Runtime[ReadingContext]) -> ReadingUpdate:
    """Reads the next passages that the model has not read yet, side by side; each is kept as soon as it is read."""
    context = runtime.context
    batch = await asyncio.to_thread(
        context.readings.unread,
        model=context.name,
        version=await prompt_version(),
        after=state.after,
        limit=BATCH,
    )
    purse = _Purse(context, calls=state.calls, tokens=state.tokens)
    waiting = iter(batch)
    done: list[ReadingUpdate] = []
    readers = [asyncio.create_task(_reader(waiting, purse, runtime, done)) for _ in range(context.concurrency)]
    try:
        await asyncio.gather(*readers)
    finally:
        for reader in readers:
            reader.cancel()
    ended = len(batch) < BATCH or len(done) < len(batch)
    return {**_sum(done), "after": batch[-1].fingerprint() if batch else state.after, "ended": ended}


def after_read(state: ReadingState) -> Literal["read", "__end__"]:
    """On to the next passages, while there are any."""
    return "__end__" if state.ended else "read"


def graph() -> StateGraph[ReadingState, ReadingContext, ReadingState, ReadingState]:
    """Return the uncompiled state machine."""
    builder = StateGraph(ReadingState, context_schema=ReadingContext)
    builder.add_node(read)
    builder.add_edge(START, "read")
    builder.add_conditional_edges("read", after_read)
    return builder


Told = Callable[[Mapping[str, Any]], None]


async def read_passages(context: ReadingContext, *, on_read: Told) -> ReadingState:
    """Reads until nothing is left, or the budget ends; `on_read` is told of each passage as it is done.

    Raises:
        ModelError: the server cannot be used; what was read until then is kept.
    """
    compiled = PrivateGraph(graph()).compile(name="reading")
    values: dict[str, Any] = {}
    async for mode, told in compiled.astream(
        ReadingState(), {"recursion_limit": 1_000_000_000}, context=context, stream_mode=["custom", "values"]
    ):
        if mode == "values":
            values = told
        else:
            on_read(told)
    return ReadingState(**values)


class _Purse:
    """What is left of the budget, while several readers spend from it."""

    def __init__(self, context: ReadingContext, *, calls: int, tokens: int) -> None:
        self._budget = context.budget
        self._started = context.started
        self._calls = calls
        self._tokens = tokens

    def take(self) -> int:
        """Sets calls aside for one passage; 0 where the budget has no room for any."""
        budget = self._budget
        if budget.max_tokens is not None and self._tokens >= budget.max_tokens:
            return 0
        if budget.max_seconds is not None and time.monotonic() - self._started >= budget.max_seconds:
            return 0
        left = CALLS if budget.max_calls is None else min(CALLS, budget.max_calls - self._calls)
        self._calls += max(0, left)
        return max(0, left)

    def settle(self, taken: int, calls: int, tokens: int) -> None:
        """Gives back what a passage did not need."""
        self._calls += calls - taken
        self._tokens += tokens


async def _reader(
    waiting: Iterator[Passage], purse: _Purse, runtime: Runtime[ReadingContext], done: list[ReadingUpdate]
) -> None:
    """Takes one passage after another from those that wait, while it can be paid for."""
    while (taken := purse.take()) and (passage := next(waiting, None)) is not None:
        context = runtime.context
        desk = ModelCaller(context.model, MemoryArchive(), seed=passage.fingerprint(), limit=taken)
        found = await extract_triples(context.store, [passage], desk)
        calls = desk.calls.values()
        tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls)
        purse.settle(taken, len(calls), tokens)
        update = ReadingUpdate(
            read=len(found),
            failed=1 - len(found),
            triples=sum(len(triples) for _, triples in found),
            calls=len(calls),
            tokens=tokens,
            warnings=[] if found else list(desk.warnings),
        )
        done.append(update)
        runtime.stream_writer(update)


def _sum(updates: list[ReadingUpdate]) -> ReadingUpdate:
    return ReadingUpdate(
        read=sum(each["read"] for each in updates),
        failed=sum(each["failed"] for each in updates),
        triples=sum(each["triples"] for each in updates),
        calls=sum(each["calls"] for each in updates),
        tokens=sum(each["tokens"] for each in updates),
        warnings=[warning for each in updates for warning in each["warnings"]],
    )
