"""Answers in LangGraph's `messages` and `custom` streams, of chats and of methods."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from chat_model import ChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from scenes import Chain, Replying, Shelf

from sleuth.agents.model import Reply, Request
from sleuth.graphs.chat import graph as chat
from sleuth.graphs.core.answer_stream import answer_in
from sleuth.graphs.core.context import Context
from sleuth.graphs.core.tokens import TokenStream
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs.execution import compile_method
from sleuth.graphs.runs.subruns import CheckpointerSubruns
from sleuth.tools.storage.archive import MemoryArchive

MODES = ["messages", "custom"]


@dataclass
class Speaking:
    """A model that streams its replies, three letters at a time; those of `breaks` break off once before their end."""

    model: Replying
    breaks: set[str] = field(default_factory=set)
    context_window: int = 8192

    async def call(self, request: Request) -> Reply:
        reply = await self.model.call(request)
        if request.listener and request.prompt in self.breaks:
            self.breaks.remove(request.prompt)
            request.listener.delta('{"known": true, "answer": "Never mi')
            request.listener.reset()
        for at in range(0, len(reply["text"]), 3) if request.listener else ():
            request.listener.delta(reply["text"][at : at + 3])
        return reply

    async def count_tokens(self, messages: Any, *, role: str) -> int:
        return await self.model.count_tokens(messages, role=role)


def context_of(model: Speaking, chain: Chain, settings: Any, saver: InMemorySaver) -> Context:
    context = Context(
        model=model,
        retriever=Shelf(chain.passages),
        archive=MemoryArchive(),
        settings=settings,
        token_stream=TokenStream(),
    )
    return replace(context, subruns=CheckpointerSubruns(saver=saver, context=context))


async def streamed(graph: Any, given: Any, context: Context) -> tuple[list[Any], list[Any]]:
    """Return the messages of our side with their namespaces and nodes, and the custom items."""
    messages, items = [], []
    config = {"configurable": {"thread_id": "talk"}}
    run = graph.astream(given, config, context=context, stream_mode=MODES, subgraphs=True)
    async for namespace, mode, item in run:
        if mode == "custom":
            items.append(item)
        elif item[0].type != "human":
            messages.append((namespace, item[1]["langgraph_node"], item[0]))
    return messages, items


def joined(messages: list[Any]) -> dict[str, AIMessageChunk]:
    """Return the messages by id, each the sum of its chunks."""
    whole: dict[str, Any] = {}
    for _, _, message in messages:
        whole[message.id] = whole[message.id] + message if message.id in whole else message
    return whole


async def test_chat_streams_its_answer_in_chunks_of_its_message(chain: Chain) -> None:
    saver, settings = InMemorySaver(), chat.Settings(method="par-rag")
    context = context_of(Speaking(ChatModel(chain, "question")), chain, settings, saver)
    graph = compile_method("chat", saver)
    messages, items = await streamed(graph, {"messages": [("user", chain.question)]}, context)
    final = (await graph.aget_state({"configurable": {"thread_id": "talk"}})).values["messages"][-1]
    assert {(namespace, node) for namespace, node, _ in messages} == {((), "act")}
    assert len(messages) > 2
    assert messages[0][2].text in "1868"
    (whole,) = joined(messages).values()
    assert (whole.id, whole.text) == (final.id, final.text)
    assert whole.additional_kwargs == final.additional_kwargs
    assert whole.usage_metadata == final.usage_metadata
    assert whole.usage_metadata["input_tokens"] > 0
    roles = {item["role"] for item in items if "text" in item}
    assert {"planner", "drafter", "answerer"} <= roles
    assert {item["node"] for item in items if item.get("state") == "started"} >= {"plan", "draft", "answer"}


async def test_text_after_withdrawn_text_is_another_message(chain: Chain) -> None:
    saver, settings = InMemorySaver(), chat.Settings(method="par-rag")
    model = Speaking(ChatModel(chain, "question"), breaks={"answerer/answer"})
    context = context_of(model, chain, settings, saver)
    messages, _ = await streamed(compile_method("chat", saver), {"messages": [("user", chain.question)]}, context)
    withdrawn, whole = joined(messages).values()
    assert withdrawn.text == "Never mi"
    assert whole.id == f"{withdrawn.id}-2"
    assert whole.text.startswith("1868 [1]")
    assert whole.usage_metadata


async def test_rejected_plan_is_streamed_under_its_message(chain: Chain) -> None:
    saver, settings = InMemorySaver(), chat.Settings(method="par-rag", approve_plan=True)
    context = context_of(Speaking(ChatModel(chain, "question")), chain, settings, saver)
    graph = compile_method("chat", saver)
    planned, _ = await streamed(graph, {"messages": [("user", chain.question)]}, context)
    rejected, _ = await streamed(graph, Command(resume={"decisions": [{"type": "reject"}]}), context)
    assert {message.id for _, _, message in (*planned, *rejected)} == {planned[0][2].id}
    assert [message.text for _, _, message in rejected] == ["The plan was not carried out."]


@pytest.mark.parametrize("name", ["par-rag", "auto"])
async def test_method_streams_one_message_per_call_that_answers(chain: Chain, name: str) -> None:
    saver = InMemorySaver()
    context = context_of(Speaking(Replying(chain.reply_to)), chain, METHODS[name].settings(), saver)
    messages, items = await streamed(compile_method(name, saver), {"question": chain.question}, context)
    assert {namespace for namespace, _, _ in messages} == {()}
    *_, last = joined(messages).values()
    assert last.text == "1868"
    assert last.usage_metadata["output_tokens"] > 0
    assert any("text" in item for item in items)


async def test_answer_of_a_subgraph_is_in_its_namespace(chain: Chain) -> None:
    saver, settings = InMemorySaver(), chat.Settings(method="par-rag")
    context = context_of(Speaking(ChatModel(chain, "question")), chain, settings, saver)
    builder = StateGraph(MessagesState, context_schema=Context)
    builder.add_node("talk", chat.graph().compile())
    builder.add_edge(START, "talk")
    messages, _ = await streamed(builder.compile(checkpointer=saver), {"messages": [("user", chain.question)]}, context)
    chunks = [(namespace, message) for namespace, _, message in messages if isinstance(message, AIMessageChunk)]
    assert {namespace[0].partition(":")[0] for namespace, _ in chunks} == {"talk"}
    assert "".join(message.text for _, message in chunks).startswith("1868 [1]")


async def test_protocol_events_have_the_whole_message(chain: Chain) -> None:
    saver, settings = InMemorySaver(), chat.Settings(method="par-rag")
    model = Speaking(ChatModel(chain, "question"), breaks={"answerer/answer"})
    context = context_of(model, chain, settings, saver)
    graph, given = compile_method("chat", saver), {"messages": [("user", chain.question)]}
    config: Any = {"configurable": {"thread_id": "talk"}}
    run = await graph.astream_events(given, config, context=context, version="v3")
    messages = [event["params"] async for event in run if event["method"] == "messages"]
    found = [params["data"][0] for params in messages if not params["namespace"]]
    final = (await graph.aget_state(config)).values["messages"][-1]
    assert not any(isinstance(each, AIMessage) for each in found)
    names = [each["event"] for each in found]
    assert names[:4] == ["message-start", "content-block-start", "content-block-delta", "message-finish"]
    assert names[4:6] == ["message-start", "content-block-start"]
    assert names[-2:] == ["content-block-finish", "message-finish"]
    assert {each["id"] for each in found if each["event"] == "message-start"} == {final.id}
    assert found[-2]["content"]["text"] == final.text
    assert found[-1]["usage"] == final.usage_metadata


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("", ""),
        ("Well", ""),
        ('{"answerable": tr', ""),
        ('{"answer": "Ed', "Ed"),
        ('{"answer": 5}', ""),
        ('["answer"]', ""),
        ('{"answer": "a\\u00e', "a"),
    ],
)
def test_answer_in_the_beginning_of_a_reply(reply: str, text: str) -> None:
    assert answer_in(reply, "reader") == text


@pytest.mark.parametrize(
    ("reply", "text"),
    [("<think>No", ""), ("Now <answer> 18", "18"), ("<answer>1868</answer> and", "1868"), ("<search>1868", "")],
)
def test_answer_in_the_beginning_of_a_transcript(reply: str, text: str) -> None:
    assert answer_in(reply, "searcher") == text
