"""Assumptions about names of LangGraph that are not public: a failure here names one to look at after an upgrade."""

import re
from typing import Any

import pytest
from folders import ROOT
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import id as clock
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import task
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from sleuth.tools import langgraph_internals as internals

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}


class State(TypedDict):
    number: int


class Seen(BaseCallbackHandler):
    """The config of the node, and the tags of each run by its name."""

    def __init__(self) -> None:
        self.config: Any = {}
        self.tags: dict[str, list[str]] = {}

    def on_chain_start(self, *_: Any, **about: Any) -> None:
        self.tags[about["name"]] = about["tags"]


async def ran(seen: Seen) -> InMemorySaver:
    """Run a graph with a node, in which there is a task, and stream its messages."""
    saver = InMemorySaver()

    @task
    async def add(number: int) -> int:
        return number + 1

    async def count(state: State, config: RunnableConfig) -> State:
        seen.config = config
        return {"number": await add(state["number"])}

    graph = StateGraph(State).add_sequence([count]).add_edge(START, "count").compile(checkpointer=saver)
    async for _ in graph.astream({"number": 1}, {**CONFIG, "callbacks": [seen]}, stream_mode="messages"):
        pass
    await graph.aupdate_state(CONFIG, None, as_node=internals.COPY)
    state = await graph.aget_state(CONFIG)
    assert (state.values, state.next, state.metadata["source"]) == ({"number": 2}, (), "fork")  # type: ignore[index]
    return saver


async def test_node_has_the_checkpointer_in_its_config() -> None:
    seen = Seen()
    assert await ran(seen) is seen.config["configurable"][internals.CHECKPOINTER]


async def test_messages_stream_is_a_handler_of_the_node() -> None:
    seen = Seen()
    await ran(seen)
    handlers = [type(each) for each in seen.config["callbacks"].handlers]
    assert internals.StreamMessagesHandler in handlers


async def test_tag_of_a_node_begins_with_its_step() -> None:
    seen = Seen()
    await ran(seen)
    assert any(tag.startswith(internals.NODE_TAG) for tag in seen.tags["count"])
    assert not any(tag.startswith(internals.NODE_TAG) for tag in seen.tags["add"] + seen.tags["LangGraph"])


async def test_result_of_a_task_is_written_under_its_name() -> None:
    saver = await ran(Seen())
    assert internals.RETURN in [channel for each in saver.writes.values() for _, channel, *_ in each.values()]


def test_delta_snapshot_holds_a_value() -> None:
    assert internals.DeltaSnapshot({"a": 1}).value == {"a": 1}


def test_new_checkpoint_comes_after_one_of_a_later_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = str(clock.UUID(int=clock.uuid6().int + (1 << 110), version=6))
    monkeypatch.setattr(clock, "_last_v6_timestamp", None)  # as in the next process
    assert str(clock.uuid6()) < ahead
    internals.advance_clock(ahead)
    assert str(clock.uuid6()) > ahead


def test_no_other_module_uses_such_a_name() -> None:
    names = r'langgraph\S* import .*\b_\w|langgraph\.\S*\._\w|__pregel|"__(?:return|copy)__"|graph:step|_last_v6'
    files = [file for layer in ("agents", "graphs", "tools", "studio") for file in (ROOT / layer).rglob("*.py")]
    assert len(files) > 100
    using = [file for file in files if re.search(names, file.read_text(encoding="utf-8"))]
    assert [file.relative_to(ROOT).as_posix() for file in using] == ["tools/langgraph_internals.py"]
