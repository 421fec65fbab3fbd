"""Execution loop of a run: compile a method, stream its steps."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from sleuth.graphs.core import Context, PrivateGraph
from sleuth.graphs.registry import runnable

if TYPE_CHECKING:
    pass


NO_LIMIT = 100_000
"""LangGraph's own step limit, far beyond what the methods' bounds allow."""


Compiled = CompiledStateGraph[Any, Context, Any, Any]


@cache
def _without_checkpoints(name: str) -> Compiled:
    """A method, or the chat, compiled once: that takes longer than many a run of it."""
    return PrivateGraph(runnable(name).graph()).compile(name=name)


def compiled(name: str, saver: BaseCheckpointSaver[Any]) -> Compiled:
    """A method's graph over a checkpointer."""
    return _without_checkpoints(name).copy({"checkpointer": saver})


async def happenings(
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
            elif event["name"] in graph.nodes and not event.get("error"):  # else it is told again when it is resumed
                yield _step(event)


def _step(event: dict[str, Any]) -> dict[str, Any]:
    finished = "result" in event
    update = dict(event["result"] or {}) if finished else {}
    return {
        "node": event["name"],
        "state": "finished" if finished else "started",
        "update": update,
        "task": event["id"],
    }
