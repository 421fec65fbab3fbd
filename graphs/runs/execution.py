"""Execution of a run: compile a method, stream its steps, read its states, and resume after the budget was used up.

A checkpoint records the start of its piece of work (a start or a resume) and the seconds of the pieces before it. So a
pause between a stop and a resume is not counted, a fork counts its own path, and reading a run gives the same number
every time. The work of a killed process after its last checkpoint is not counted.
"""

import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from functools import cache
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, get_checkpoint_id
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from sleuth.graphs.core.context import Context
from sleuth.graphs.core.state import SCHEMA_VERSION
from sleuth.graphs.core.tracing import traced
from sleuth.graphs.registry import runnable
from sleuth.tools.errors import StoreTooNew, UnknownName
from sleuth.tools.langgraph_internals import COPY, advance_clock

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


def accept_state(state: StateSnapshot) -> StateSnapshot:
    """Return the state. Raise StoreTooNew if a newer release wrote it. New checkpoints get later ids than this one."""
    advance_clock(checkpoint_id_of(state))
    version = int((state.values or {}).get("schema_version", 1))  # the first layout has no field for it
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"This checkpoint was written by a newer release (state version {version}, this release reads up to "
            f"{SCHEMA_VERSION}): upgrade sleuth to resume it."
        )
    return state


def unknown_checkpoint(id: str, others: list[str]) -> UnknownName:
    """Return the error for a checkpoint that a thread does not have."""
    return UnknownName("checkpoint", id, others, "`sleuth runs history` shows them, by id, step and node.")


async def newest_branch(graph: Compiled, config: RunnableConfig) -> AsyncGenerator[StateSnapshot]:
    """Yield the latest state of a thread and then its ancestors; each is read when it is needed."""
    at: RunnableConfig | None = config
    while at and (state := await graph.aget_state(at)).created_at:
        yield accept_state(state)
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
