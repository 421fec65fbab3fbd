"""How a node leaves a question to another method, which answers it in a thread of its own."""

from asyncio import create_task
from collections.abc import Coroutine, Mapping
from contextvars import copy_context
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.config import get_config
from langgraph.runtime import Runtime

from sleuth.agents.model_calls import CallRecord
from sleuth.graphs.core.answer import Note, Subrun, total_cost
from sleuth.graphs.core.context import Context, SubrunRequest, SubrunResult
from sleuth.graphs.core.node import remaining
from sleuth.graphs.core.state import RunState
from sleuth.tools.errors import RunError

T = TypeVar("T")


async def run_subrun(
    state: RunState,
    runtime: Runtime[Context],
    *,
    method: str,
    number: int,
    values: dict[str, Any],
    notes: Mapping[str, Note] | None = None,
    plan: Mapping[str, Any] | None = None,
) -> SubrunResult:
    """A hop with what is left of the budget; what it tells is this node's to stream."""
    hops, config = runtime.context.hops, get_config()["configurable"]
    if hops is None:
        raise RunError(
            "This graph runs other methods in threads of their own: give its Context `hops`, as `sleuth.ask` does."
        )
    hop = SubrunRequest(
        number=number,
        method=method,
        question=state.question,
        notes=dict(notes or {}),
        values=values,
        budget=remaining(state, runtime),
        parent=str(config.get("thread_id") or ""),
        checkpoint=str(config.get("checkpoint_map", {}).get("", "")),
        place=str(config["__pregel_task_id"]),
        plan=dict(plan or {}),
    )
    here = copy_context()
    return await in_fresh_context(hops.run(hop, lambda step: here.run(runtime.stream_writer, step)))


async def in_fresh_context(work: Coroutine[Any, Any, T]) -> T:
    """Do something outside of the running node, of which LangGraph would make it a subgraph.

    Of the node's config only the callbacks are kept, so a tracer of the caller also receives this work.
    """
    variables = copy_context()
    outer = var_child_runnable_config.get()
    kept = RunnableConfig(callbacks=outer["callbacks"]) if outer and outer.get("callbacks") else None
    variables.run(var_child_runnable_config.set, kept)
    return await create_task(work, context=variables)


def new_subrun(method: str, why: str) -> Subrun:
    """A method's turn before it has begun."""
    return Subrun(
        method=method,
        why=why,
        thread="",
        status="new",
        text="",
        citations=[],
        confidence=None,
        doubt="",
        notes=[],
        cost=total_cost({}),
    )


def with_result(hop: Subrun, end: SubrunResult, notes: list[str]) -> Subrun:
    """A method's turn once it has had it; `notes` are the keys of what it has found out."""
    return Subrun(**{**hop, **end.verdict, "thread": end.thread, "notes": notes, "cost": total_cost(end.calls)})


def prefix_nodes(method: str, end: SubrunResult) -> dict[str, CallRecord]:
    """The calls of a hop as those of the run that it is part of, their nodes as `method/node`."""
    return {id: {**call, "node": f"{method}/{call['node']}"} for id, call in end.calls.items()}
