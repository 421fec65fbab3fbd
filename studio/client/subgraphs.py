"""Methods as nodes of other graphs, which run them as subgraphs with their own checkpointer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from sleuth.graphs.chat.messages import run_message
from sleuth.graphs.core.context import Budget, Context
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.core.tracing import traced
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.execution import RECURSION_LIMIT, uncheckpointed
from sleuth.studio.client.callers import call_blocking
from sleuth.studio.client.opening import Opener
from sleuth.tools.errors import UsageError
from sleuth.tools.langgraph_internals import CHECKPOINTER

Node = RunnableLambda[Mapping[str, Any], dict[str, Any]]


def subgraph_of(
    make_context: Callable[..., Context],
    method: str,
    *,
    values: dict[str, Any] | None,
    budget: Budget | None,
    question: Callable[[Mapping[str, Any]], str] | None,
    opener: Opener,
) -> Node:
    """Return a node that runs a method as a subgraph; see `Sleuth.as_subgraph`."""
    name = runnable(method).name
    graph = uncheckpointed(name)

    async def run(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        saver = config.get("configurable", {}).get(CHECKPOINTER)
        context = make_context(name, values=values, budget=budget, saver=saver)
        if name == CHAT:
            inputs: dict[str, Any] = {"messages": state["messages"]}
        else:
            inputs = {"question": (question or last_question)(state)}
        config = traced(config, context.tracing, texts=context.trace_texts)
        output = await graph.ainvoke(inputs, {**config, "recursion_limit": RECURSION_LIMIT}, context=context)
        if name == CHAT:
            return {"messages": output["messages"][-1:]}
        return {"messages": [run_message(output, {"sleuth": dict(output["verdict"])})]}

    def run_sync(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        values = dict(config.get("configurable", {}))
        if isinstance(saver := values.get(CHECKPOINTER), BaseCheckpointSaver):
            values[CHECKPOINTER] = _InThreads(saver)
        return call_blocking(opener, partial(run, state, {**config, "configurable": values}))

    return RunnableLambda(run_sync, afunc=run, name=name)


def last_question(state: Mapping[str, Any]) -> str:
    """Return the text of the last human message of a state with messages.

    Raises:
        UsageError: the state has none.
    """
    messages: list[AnyMessage] = list(state.get("messages", ()))
    for message in reversed(messages):
        if isinstance(message, HumanMessage) and message.text.strip():
            return message.text
    raise UsageError("The state has no human message to answer. Add one, or give as_subgraph a `question` function.")


class _InThreads(BaseCheckpointSaver[Any]):
    """Checkpointer that calls a synchronous one in threads, for graphs that are called without `await`."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        self.get_next_version = saver.get_next_version  # type: ignore[method-assign]  # versions of the same kind
        for name in ("get_tuple", "put", "put_writes"):
            setattr(self, f"a{name}", partial(asyncio.to_thread, getattr(saver, name)))

    @property
    def config_specs(self) -> list[Any]:
        return self._saver.config_specs

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:  # noqa: ANN401
        for checkpoint in await asyncio.to_thread(lambda: list(self._saver.list(config, **options))):
            yield checkpoint
