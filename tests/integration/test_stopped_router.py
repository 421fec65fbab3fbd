"""A run that is stopped between a node's update and the choice of what follows loses neither."""

import asyncio
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from sleuth.graphs.store import open_store
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration


@dataclass(frozen=True, kw_only=True)
class State:
    said: str = ""


class Crossing:
    """Two nodes, and a router between them that is not async, as ours, and waits at its first time."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.free = threading.Event()

    async def first(self, state: State) -> dict[str, str]:
        return {"said": "first"}

    async def second(self, state: State) -> dict[str, str]:
        return {"said": f"{state.said}, second"}

    def onwards(self, state: State) -> Literal["second", "__end__"]:
        self.reached.set()
        self.free.wait(60)
        return "second" if state.said == "first" else END

    def graph(self) -> StateGraph[State]:
        graph = StateGraph(State)
        graph.add_node(self.first)
        graph.add_node(self.second)
        graph.add_edge(START, "first")
        graph.add_conditional_edges("first", self.onwards)
        graph.add_edge("second", END)
        return graph


async def test_it_goes_on_to_the_same_end(tmp_path: Path, database_url: str | None) -> None:
    crossing, settings = Crossing(), Settings(home=tmp_path / "home", database_url=database_url)
    async with open_store(settings) as store:
        compiled = crossing.graph().compile(checkpointer=store.saver)
        config: RunnableConfig = {"configurable": {"thread_id": uuid.uuid4().hex}}

        async def run() -> None:
            async for _ in compiled.astream(State(), config, durability="sync"):
                pass

        running = asyncio.create_task(run())
        await asyncio.to_thread(crossing.reached.wait, 60)
        running.cancel()
        await asyncio.wait([running])
        crossing.free.set()
        assert (await compiled.ainvoke(None, config))["said"] == "first, second"
