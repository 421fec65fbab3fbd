"""Execution of a run: compile a method, stream its steps, resume after the budget was used up, and run sub-runs.

A checkpoint records the start of its piece of work (a start or a resume) and the seconds of the pieces before it. So a
pause between a stop and a resume is not counted, a fork counts its own path, and reading a run gives the same number
every time. The work of a killed process after its last checkpoint is not counted.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, get_checkpoint_id
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from sleuth.graphs.core.context import Context, MethodSettings, SubrunRequest, SubrunResult
from sleuth.graphs.core.tokens import TokenStream
from sleuth.graphs.core.tracing import traced
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.graphs.registry import configure, runnable
from sleuth.tools.langgraph_internals import COPY
from sleuth.tools.settings import Profile

RECURSION_LIMIT = 100_000
"""LangGraph's own step limit, far above the bounds of the methods."""


Compiled = CompiledStateGraph[Any, Context, Any, Any]


@cache
def uncheckpointed(name: str) -> Compiled:
    """Compile a method or the chat once: that takes longer than many of its runs."""
    return runnable(name).graph().compile(name=name)


def compile_method(name: str, saver: BaseCheckpointSaver[Any]) -> Compiled:
    """Return a method's graph with a checkpointer."""
    return uncheckpointed(name).copy({"checkpointer": saver})


async def stream_steps(
    graph: Compiled,
    inputs: dict[str, Any] | Command[Any] | None,
    config: RunnableConfig,
    context: Context,
    *,
    control: RunControl | None = None,
) -> AsyncGenerator[dict[str, Any]]:
    """Run a graph and yield its steps: `node`, `state`, `update` and `task`; steps of sub-runs name their thread.

    With `context.token_stream` set, the tokens of model calls are yielded between them.
    A drain that `control` requests interrupts the run between two steps, with GraphDrained.
    """
    config = traced(config, context.tracing, texts=context.trace_texts)
    run: Any = graph.astream(
        inputs, config, context=context, stream_mode=["tasks", "custom"], durability="sync", control=control
    )
    async with aclosing(run) as events:
        async for mode, event in events:
            if mode == "custom":
                yield event
            elif event["name"] in graph.nodes and not event.get("error"):  # a failed one is yielded when it is resumed
                finished = "result" in event
                yield {
                    "kind": "step",
                    "node": event["name"],
                    "state": "finished" if finished else "started",
                    "update": dict(event["result"] or {}) if finished else {},
                    "task": event["id"],
                }


def now() -> str:
    """Return the time in UTC, as ISO 8601 to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def checkpoint_id_of(state: StateSnapshot | CheckpointTuple) -> str:
    """Return the id of a state's checkpoint; empty if it has none."""
    return get_checkpoint_id(state.config) or ""


def parent_id(state: StateSnapshot | CheckpointTuple) -> str:
    """Return the id of the checkpoint before that of a state; empty for the first one."""
    return (state.parent_config and get_checkpoint_id(state.parent_config)) or ""


async def newest_branch(graph: Compiled, config: RunnableConfig) -> AsyncGenerator[StateSnapshot]:
    """Yield the latest state of a thread and then its ancestors; each is read when it is needed."""
    at: RunnableConfig | None = config
    while at and (state := await graph.aget_state(at)).created_at:
        yield state
        at = state.parent_config


async def resume_with_budget(graph: Compiled, config: RunnableConfig) -> float | None:
    """If a run ended with its budget used up, branch it from the last checkpoint before that.

    The branch keeps the calls made until then. A sub-run without budget starts again. Any other run is unchanged.

    Returns:
        Seconds worked up to the branch point (LangGraph does not copy them); None if no branch was made.
    """
    latest = await graph.aget_state(config)
    if latest.tasks or (latest.values.get("verdict") or {}).get("status") != "out_of_budget":
        return None
    earlier = (state async for state in newest_branch(graph, config) if not _is_out_of_budget(state.values))
    at = await anext(earlier, None)
    if at is None:
        return None
    await graph.aupdate_state(at.config, None, as_node=COPY)
    return seconds_at(at)


def _is_out_of_budget(values: Mapping[str, Any]) -> bool:
    """Return whether a state records that the budget, or that of a sub-run, is used up."""
    ends: Iterable[Any] = (values.get("verdict"), values.get("hop"), *(values.get("hops") or {}).values())
    return bool(values.get("halted")) or any(end and end["status"] == "out_of_budget" for end in ends)


# Sub-runs


def subrun_thread(request: SubrunRequest) -> str:
    """Return the name of a sub-run's thread: the outer run's name, abbreviated with a hash if it is too long."""
    outer, place = request.parent, f".{request.number}.{request.place[:6]}"
    if len(outer) + len(place) > LONGEST_NAME:
        suffix = f"-{sha256(outer.encode()).hexdigest()[:12]}"
        outer = outer[: LONGEST_NAME - len(suffix) - len(place)] + suffix
    return outer + place


@dataclass(frozen=True, kw_only=True)
class CheckpointerSubruns:
    """Sub-runs in threads of any checkpointer, such as that of a LangGraph server.

    `context` is that of the outer run. `announce` is called with the thread before a sub-run begins.
    """

    saver: BaseCheckpointSaver[Any]
    context: Context
    profile: Profile = "default"
    announce: Callable[[str, SubrunRequest], Awaitable[None]] | None = None

    async def __call__(self, request: SubrunRequest) -> SubrunResult:
        """Start or resume a sub-run. Thread ids are UUIDs, which LangGraph's servers require."""
        id = str(uuid5(NAMESPACE_OID, f"{request.parent}/{request.number}/{request.place}"))
        kind, wants_tokens = runnable(request.method), request.wants_tokens
        settings = configure(kind, request.values, self.profile)
        streams = TokenStream(answers=kind.answers, wants_tokens=wants_tokens) if wants_tokens else None
        context = replace(
            self.context,
            settings=settings,
            budget=request.budget,
            token_stream=streams,
            subruns=self,
            started=time.monotonic(),
        )
        graph = compile_method(request.method, self.saver)
        place, about = {"thread_id": id, "checkpoint_ns": ""}, {"graph_id": request.method}
        config = RunnableConfig(configurable=place, metadata=about, recursion_limit=RECURSION_LIMIT)
        if self.announce:
            await self.announce(id, request)
        await begin_subrun(graph, config, request, settings)
        if (await graph.aget_state(config)).tasks:
            async with aclosing(stream_steps(graph, None, config, context, control=request.control)) as steps:
                async for step in steps:
                    request.on_step({"thread": id, "method": request.method, "part_of": request.parent, **step})
        return end_subrun(id, (await graph.aget_state(config)).values)


async def begin_subrun(
    graph: Compiled, config: RunnableConfig, request: SubrunRequest, settings: MethodSettings
) -> None:
    """Store the initial state of a sub-run in one write, unless it has begun."""
    before = await graph.aget_state(config)
    if before.values or before.tasks:
        return
    inputs = {"question": request.question, "notes": request.notes}
    if not request.plan:
        await graph.aupdate_state(config, inputs, as_node=START)
        return
    start = runnable(request.method).start_from_plan
    assert start, f"{request.method} takes no plan"
    await graph.aupdate_state(config, {**inputs, **start(request.plan, settings)}, as_node="plan")


def end_subrun(thread: str, values: Mapping[str, Any]) -> SubrunResult:
    """Return what the outer run keeps of a sub-run, from the values of its last state."""
    fields = ("verdict", "notes", "calls", "warnings")
    return SubrunResult(thread=thread, **{name: values[name] for name in fields})


_BEGAN, _BEFORE = "sleuth_began", "sleuth_seconds_before"


def with_clock(config: RunnableConfig, before: float) -> RunnableConfig:
    """Return a config whose checkpoints count seconds from this moment, after those `before`."""
    return {**config, "metadata": {_BEFORE: before, _BEGAN: time.time()}}


def with_paused_clock(config: RunnableConfig, state: StateSnapshot) -> RunnableConfig:
    """Return a config for a checkpoint that is copied from another one without working."""
    return {**config, "metadata": {_BEFORE: seconds_at(state)}}


def seconds_at(state: StateSnapshot) -> float:
    """Return the seconds that a run had worked at a checkpoint."""
    metadata: dict[str, Any] = dict(state.metadata or {})
    before, began = float(metadata.get(_BEFORE, 0.0)), metadata.get(_BEGAN)
    if began is None or not state.created_at:
        return before
    worked = datetime.fromisoformat(state.created_at).timestamp() - float(began)
    return round(before + max(worked, 0.0), 3)  # a clock that is set back counts nothing
