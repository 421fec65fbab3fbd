"""Execution of a run: compile a method, stream its steps, and resume after the budget was used up."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import cache
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from sleuth.graphs.compat import FORMER_NODES
from sleuth.graphs.core.context import Context
from sleuth.graphs.core.private_graph import PrivateGraph
from sleuth.graphs.core.wall_clock import seconds_at
from sleuth.graphs.registry import runnable

RECURSION_LIMIT = 100_000
"""LangGraph's own step limit, far above the bounds of the methods."""


Compiled = CompiledStateGraph[Any, Context, Any, Any]


@cache
def uncheckpointed(name: str) -> Compiled:
    """Compile a method or the chat once: that takes longer than many of its runs.

    Nodes of older releases are added without edges to them: stored runs that name one are shown, forked and resumed.
    """
    graph = PrivateGraph(runnable(name).graph())
    for former, router in FORMER_NODES.get(name, {}).items():
        graph.add_node(former, _change_nothing)
        graph.add_conditional_edges(former, router)
    return graph.compile(name=name)


async def _change_nothing(state: object) -> None:
    """Node of an older release: its router leads to a present one."""


def compile_method(name: str, saver: BaseCheckpointSaver[Any]) -> Compiled:
    """Return a method's graph with a checkpointer."""
    return uncheckpointed(name).copy({"checkpointer": saver})


async def stream_steps(
    graph: Compiled,
    given: dict[str, Any] | Command[Any] | None,
    config: RunnableConfig,
    context: Context,
    *,
    control: RunControl | None = None,
) -> AsyncGenerator[dict[str, Any]]:
    """Run a graph and yield its steps: `node`, `state`, `update` and `task`; steps of sub-runs name their thread.

    With `context.token_stream` set, the tokens of model calls are yielded between them.
    A drain that `control` requests interrupts the run between two steps, with GraphDrained.
    """
    run: Any = graph.astream(
        given, config, context=context, stream_mode=["tasks", "custom"], durability="sync", control=control
    )
    async with aclosing(run) as events:
        async for mode, event in events:
            if mode == "custom":
                yield event
            elif event["name"] in graph.nodes and not event.get("error"):  # a failed one is yielded when it is resumed
                finished = "result" in event
                yield {
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
    return _id(state.config)


def parent_id(state: StateSnapshot | CheckpointTuple) -> str:
    """Return the id of the checkpoint before that of a state; empty for the first one."""
    return _id(state.parent_config or {})


def path_to_latest(states: Sequence[StateSnapshot]) -> list[StateSnapshot]:
    """Return the first of the states, which are the newest first, and its ancestors."""
    by_id = {checkpoint_id_of(state): state for state in states}
    path, at = [], states[0] if states else None
    while at is not None:
        path.append(at)
        at = by_id.get(parent_id(at))
    return path


def _id(config: RunnableConfig) -> str:
    return str(config.get("configurable", {}).get("checkpoint_id", ""))


async def resume_with_budget(graph: Compiled, config: RunnableConfig) -> float | None:
    """Branch a run that ended because its budget was used up, from the last checkpoint before that.

    The branch keeps the calls made until then. A sub-run without budget starts again. Any other run is unchanged.

    Returns:
        The seconds that the run had worked at the branch, which LangGraph does not record in a copy; None without one.
    """
    latest = await graph.aget_state(config)
    if latest.tasks or (latest.values.get("verdict") or {}).get("status") != "out_of_budget":
        return None
    states = [state async for state in graph.aget_state_history(config)]
    at = next((state for state in path_to_latest(states) if not _is_out_of_budget(state.values)), None)
    if at is None:
        return None
    await graph.aupdate_state(at.config, None, as_node="__copy__")
    return seconds_at(at)


async def explain_changed_state(graph: Compiled, config: RunnableConfig, error: Exception) -> str:
    """Explain an error of a run whose state a fork has changed; raise the error again if no state was changed."""
    states = [state async for state in graph.aget_state_history(config)]
    if not any((state.metadata or {}).get("source") == "update" for state in path_to_latest(states)[:-1]):
        raise error
    reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return (
        f"Run {config['configurable']['thread_id']} cannot continue from the state that a fork has changed: {reason}. "
        "Fork again with values that name only what the state contains."
    )


def _is_out_of_budget(values: Mapping[str, Any]) -> bool:
    """Return whether a state records that the budget, or that of a sub-run, is used up."""
    verdict, hops = values.get("verdict"), values.get("hops") or {}
    turns: Iterable[Any] = (verdict, values.get("hop"), *hops.values())
    return bool(values.get("halted")) or any(turn and turn["status"] == "out_of_budget" for turn in turns)
