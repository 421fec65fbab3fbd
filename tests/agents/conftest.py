"""A model caller inside a graph with one node: asks are tasks, and tasks need a run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from scripted_model import ScriptedModel
from typing_extensions import TypedDict

from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.tools.storage.archive import MemoryArchive


class _State(TypedDict):
    input: str


@dataclass
class NodeHarness:
    """Runner of a node's work with a model caller, in a thread that can be resumed."""

    model: ScriptedModel
    archive: MemoryArchive
    caller: ModelCaller | None = None
    seed: str = "a question"
    limit: int | None = None

    async def run(
        self, work: Callable[[ModelCaller], Awaitable[Any]], *, thread: str = "1", saver: InMemorySaver | None = None
    ) -> Any:
        results: list[Any] = []

        async def draft(state: _State) -> None:
            self.caller = ModelCaller(self.model, self.archive, seed=self.seed, limit=self.limit)
            results.append(await work(self.caller))

        graph = StateGraph(_State).add_sequence([draft]).add_edge(START, "draft")
        saver = saver or InMemorySaver()
        config = {"configurable": {"thread_id": thread}}
        begun = await saver.aget_tuple(config)
        await graph.compile(checkpointer=saver).ainvoke(None if begun else {"input": ""}, config)
        return results[-1]


@pytest.fixture
def harness() -> Callable[..., NodeHarness]:
    def make(model: ScriptedModel, **options: Any) -> NodeHarness:
        return NodeHarness(model, MemoryArchive(), **options)

    return make
