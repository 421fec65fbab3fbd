"""Execution loop of a run: compile a method, stream its steps."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cache
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from sleuth.graphs.core import Context, PrivateGraph
from sleuth.graphs.registry import runnable

RECURSION_LIMIT = 100_000
"""LangGraph's own step limit, far above the bounds of the methods."""


Compiled = CompiledStateGraph[Any, Context, Any, Any]


@cache
def _without_checkpoints(name: str) -> Compiled:
    """Compile a method or the chat once: that takes longer than many of its runs."""
    return PrivateGraph(runnable(name).graph()).compile(name=name)


def compile_method(name: str, saver: BaseCheckpointSaver[Any]) -> Compiled:
    """Return a method's graph with a checkpointer."""
    return _without_checkpoints(name).copy({"checkpointer": saver})


async def stream_steps(
    graph: Compiled, given: dict[str, Any] | Command[Any] | None, config: RunnableConfig, context: Context
) -> AsyncGenerator[dict[str, Any]]:
    """Run a graph and yield its steps: `node`, `state`, `update` and `task`; steps of sub-runs name their thread.

    With `context.hearing` set, the tokens of model calls are yielded between them (`sleuth.agents.llm.token_stream`).
    """
    run: Any = graph.astream(given, config, context=context, stream_mode=["tasks", "custom"], durability="sync")
    async with aclosing(run) as events:
        async for mode, event in events:
            if mode == "custom":
                yield event
            elif event["name"] in graph.nodes and not event.get("error"):  # a failed one is yielded when it is resumed
                yield _step(event)


def checkpoint_id_of(state: StateSnapshot) -> str:
    """Return the id of a state's checkpoint; empty if it has none."""
    return _id(state.config)


def parent_id(state: StateSnapshot) -> str:
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


def _step(event: dict[str, Any]) -> dict[str, Any]:
    finished = "result" in event
    update = dict(event["result"] or {}) if finished else {}
    return {
        "node": event["name"],
        "state": "finished" if finished else "started",
        "update": update,
        "task": event["id"],
    }
