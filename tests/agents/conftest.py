"""A desk inside the smallest graph that has one: asks are tasks, and tasks need a run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from sleuth.agents.llm.testing import ScriptedModel
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.tools.storage.archive import MemoryArchive


class _State(TypedDict):
    input: str


@dataclass
class Office:
    """Runs what a node does at its desk, in a thread that can be resumed."""

    model: ScriptedModel
    archive: MemoryArchive
    desk: ModelCaller | None = None
    seed: str = "a question"
    limit: int | None = None

    async def run(
        self, work: Callable[[ModelCaller], Awaitable[Any]], *, thread: str = "1", saver: InMemorySaver | None = None
    ) -> Any:
        results: list[Any] = []

        async def draft(state: _State) -> None:
            self.desk = ModelCaller(self.model, self.archive, seed=self.seed, limit=self.limit)
            results.append(await work(self.desk))

        graph = StateGraph(_State)
        graph.add_node(draft)
        graph.add_edge(START, "draft")
        graph.add_edge("draft", END)
        saver = saver or InMemorySaver()
        config = {"configurable": {"thread_id": thread}}
        begun = await saver.aget_tuple(config)
        await graph.compile(checkpointer=saver).ainvoke(None if begun else {"input": ""}, config)
        return results[-1]


@pytest.fixture
def office() -> Callable[..., Office]:
    def furnish(model: ScriptedModel, **options: Any) -> Office:
        return Office(model, MemoryArchive(), **options)

    return furnish
