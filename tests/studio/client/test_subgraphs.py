"""Methods as subgraphs and tools of graphs of others: their checkpointer, streams and interrupts."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kelp_fair import FAIR, QUESTION, READING, USAGE, replying
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

import sleuth
from sleuth import sync

PLAN = json.dumps([{"question": QUESTION, "needs": []}])
DRAFT = '{"answer": "Kelp Fair", "citations": [{"source": 1, "quote": "The Kelp Fair is held at Brindlecote"}]}'
THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
async def settings(tmp_path: Path) -> sleuth.Settings:
    notes = tmp_path / "fair.md"
    notes.write_text(FAIR, encoding="utf-8")
    made = sleuth.Settings(home=tmp_path / "home", embedder="none")
    await sleuth.ingest(notes, settings=made)
    return made


@pytest.fixture
async def app(settings: sleuth.Settings) -> AsyncIterator[sleuth.Sleuth]:
    async with sleuth.open(settings, model=replying(*[READING] * 3)) as opened:
        yield opened


def parent_of(node: Any) -> StateGraph[MessagesState]:
    graph = StateGraph(MessagesState)
    graph.add_node("sleuth", node)
    graph.add_edge(START, "sleuth")
    return graph


async def test_method_answers_in_a_graph_with_messages(app: sleuth.Sleuth) -> None:
    graph = parent_of(app.as_subgraph("plain-rag")).compile(checkpointer=InMemorySaver())
    state = await graph.ainvoke({"messages": [HumanMessage(QUESTION)]}, THREAD)
    answer = state["messages"][-1]
    assert answer.text.startswith("Kelp Fair")
    assert answer.usage_metadata == {**USAGE, "input_token_details": {"cache_read": 0}}
    (citation,) = answer.additional_kwargs["sleuth"]["citations"]
    assert citation["quote"] == "The Kelp Fair is held at Brindlecote every May."


async def test_completed_calls_are_not_repeated_after_a_failure(settings: sleuth.Settings) -> None:
    """The parent's checkpointer has the subgraph's steps: a second start continues after the last one."""
    saver, failing = InMemorySaver(), replying(PLAN)
    async with sleuth.open(settings, model=failing) as app:
        graph = parent_of(app.as_subgraph("par-rag")).compile(checkpointer=saver)
        with pytest.raises(sleuth.SleuthError):
            await graph.ainvoke({"messages": [HumanMessage(QUESTION)]}, THREAD)
    rest = replying(DRAFT, '{"known": true, "answer": "Kelp Fair"}')
    async with sleuth.open(settings, model=rest) as app:
        graph = parent_of(app.as_subgraph("par-rag")).compile(checkpointer=saver)
        state = await graph.ainvoke(None, THREAD)
    assert state["messages"][-1].text.startswith("Kelp Fair")


class Task(TypedDict, total=False):
    topic: str
    messages: list[Any]


async def test_question_is_taken_from_another_state(app: sleuth.Sleuth) -> None:
    graph = StateGraph(Task)
    node = app.as_subgraph("plain-rag", question=lambda state: f"Which fair is held at {state['topic']}?")
    graph.add_node("sleuth", node)
    graph.add_edge(START, "sleuth")
    state = await graph.compile().ainvoke({"topic": "Brindlecote"})
    assert state["messages"][-1].text.startswith("Kelp Fair")


async def test_state_without_a_question_is_refused(app: sleuth.Sleuth) -> None:
    with pytest.raises(sleuth.SleuthError, match=r"no human message.*as_subgraph"):
        await parent_of(app.as_subgraph("plain-rag")).compile().ainvoke({"messages": [AIMessage("Hello.")]})


async def test_interrupt_of_the_chat_stops_the_parent_until_it_is_answered(settings: sleuth.Settings) -> None:
    model = replying("question", PLAN, DRAFT, '{"known": true, "answer": "Kelp Fair"}')
    async with sleuth.open(settings, model=model) as app:
        values = {"method": "par-rag", "approve_plan": True, "ask_back": False}
        graph = parent_of(app.as_subgraph("chat", values=values)).compile(checkpointer=InMemorySaver())
        state = await graph.ainvoke({"messages": [HumanMessage(QUESTION)]}, THREAD)
        (interrupt,) = state["__interrupt__"]
        assert interrupt.value["action_requests"]
        state = await graph.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert state["messages"][-1].text.startswith("Kelp Fair")


def test_graph_that_is_called_without_await_streams_and_stops(settings: sleuth.Settings, tmp_path: Path) -> None:
    """The parent has a synchronous checkpointer, and its whole run is in a thread without an event loop."""
    model = replying("question", PLAN, DRAFT, '{"known": true, "answer": "Kelp Fair"}')
    values = {"method": "par-rag", "approve_plan": True, "ask_back": False}
    with (
        sync.open(settings, model=model) as app,
        SqliteSaver.from_conn_string(str(tmp_path / "kept.sqlite")) as kept,
    ):
        graph = parent_of(app.as_subgraph("chat", values=values)).compile(checkpointer=kept)
        given = {"messages": [HumanMessage(QUESTION)]}
        *steps, (namespace, last) = graph.stream(given, THREAD, stream_mode="updates", subgraphs=True)
        assert ["classify"] in [list(update) for place, update in steps if place]
        assert (namespace, list(last)) == ((), ["__interrupt__"])
        state = graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert state["messages"][-1].text.startswith("Kelp Fair")


async def test_agent_of_langchain_uses_a_method_as_its_tool(app: sleuth.Sleuth) -> None:
    tool = app.as_tool("plain-rag")
    call = {"name": tool.name, "args": {"question": QUESTION}, "id": "1"}
    agent = create_agent(replying(AIMessage("", tool_calls=[call]), "It is the Kelp Fair."), [tool])
    state = await agent.ainvoke({"messages": [HumanMessage(QUESTION)]})
    (result,) = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert result.text.startswith("Kelp Fair")
    assert result.artifact["status"] == "answered"
    assert state["messages"][-1].text == "It is the Kelp Fair."
