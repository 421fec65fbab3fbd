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
from sleuth.graphs.core.answer import Hop, Note, cost_of
from sleuth.graphs.core.context import Context, HopEnd, HopInput
from sleuth.graphs.core.node import remaining
from sleuth.graphs.core.state import RunState
from sleuth.tools.errors import RunError

T = TypeVar("T")


async def delegate(
    state: RunState,
    runtime: Runtime[Context],
    *,
    method: str,
    number: int,
    values: dict[str, Any],
    notes: Mapping[str, Note] | None = None,
    plan: Mapping[str, Any] | None = None,
) -> HopEnd:
    """A hop with what is left of the budget; what it tells is this node's to stream."""
    hops, config = runtime.context.hops, get_config()["configurable"]
    if hops is None:
        raise RunError(
            "This graph runs other methods in threads of their own: give its Context `hops`, as `sleuth.ask` does."
        )
    hop = HopInput(
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
    return await apart(hops.run(hop, lambda step: here.run(runtime.stream_writer, step)))


async def apart(work: Coroutine[Any, Any, T]) -> T:
    """Do something outside of the running node, of which LangGraph would make it a subgraph.

    Of the node's config only the callbacks are kept, so a tracer of the caller also receives this work.
    """
    variables = copy_context()
    outer = var_child_runnable_config.get()
    kept = RunnableConfig(callbacks=outer["callbacks"]) if outer and outer.get("callbacks") else None
    variables.run(var_child_runnable_config.set, kept)
    return await create_task(work, context=variables)


def new_hop(method: str, why: str) -> Hop:
    """A method's turn before it has begun."""
    return Hop(
        method=method,
        why=why,
        thread="",
        status="new",
        text="",
        citations=[],
        confidence=None,
        doubt="",
        notes=[],
        cost=cost_of({}),
    )


def ended(hop: Hop, end: HopEnd, notes: list[str]) -> Hop:
    """A method's turn once it has had it; `notes` are the keys of what it has found out."""
    return Hop(**{**hop, **end.verdict, "thread": end.thread, "notes": notes, "cost": cost_of(end.calls)})


def counted(method: str, end: HopEnd) -> dict[str, CallRecord]:
    """The calls of a hop as those of the run that it is part of, their nodes as `method/node`."""
    return {id: {**call, "node": f"{method}/{call['node']}"} for id, call in end.calls.items()}
