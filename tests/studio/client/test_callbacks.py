"""Callbacks of the caller receive the model calls and searches of a run, by every way of asking."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from kelp_fair import FAIR, QUESTION, READING, Fixed, replying
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from langgraph.graph import START, StateGraph

import sleuth
from sleuth import sync
from sleuth.tools.errors import UsageError

SEARCH = ["search", QUESTION, "found 1"]
CALL = ["model", "tokens 7 3"]


class Recorder(BaseCallbackHandler):
    """Handler of a caller that writes down model calls, searches and tools."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.parents: list[bool] = []

    def on_chat_model_start(self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **about: Any) -> None:
        self.seen.append("model")
        self.parents.append(about["parent_run_id"] is not None)

    def on_llm_end(self, response: LLMResult, **about: Any) -> None:
        usage = response.generations[0][0].message.usage_metadata  # type: ignore[union-attr]
        self.seen.append(f"tokens {usage['input_tokens']} {usage['output_tokens']}")  # type: ignore[index]

    def on_retriever_start(self, serialized: dict[str, Any], query: str, **about: Any) -> None:
        self.seen += ["search", query]

    def on_retriever_end(self, documents: list[Document], **about: Any) -> None:
        self.seen.append(f"found {len(documents)}")

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **about: Any) -> None:
        self.seen.append("tool")


@pytest.fixture
def settings(tmp_path: Path) -> sleuth.Settings:
    return sleuth.Settings(home=tmp_path / "home", embedder="none")


@pytest.fixture
async def app(settings: sleuth.Settings, tmp_path: Path) -> AsyncIterator[sleuth.Sleuth]:
    """An open collection with one passage."""
    (tmp_path / "fair.md").write_text(FAIR, encoding="utf-8")
    await sleuth.ingest(tmp_path / "fair.md", settings=settings)
    async with sleuth.open(settings, model=replying(*[READING] * 9)) as opened:
        yield opened


Use = Callable[[sleuth.Sleuth, Recorder], Awaitable[object]]


async def ask(app: sleuth.Sleuth, recorder: Recorder) -> None:
    await app.ask(QUESTION, method="plain-rag", callbacks=[recorder])


async def subrun(app: sleuth.Sleuth, recorder: Recorder) -> None:
    """`auto` lets another method answer, in a thread of its own."""
    await app.ask(QUESTION, method="auto", values={"order": "plain-rag"}, callbacks=[recorder])


async def resumed(app: sleuth.Sleuth, recorder: Recorder) -> None:
    events = app.stream(QUESTION, method="plain-rag", thread="first")
    async with aclosing(events):
        async for event in events:
            if isinstance(event, sleuth.Step) and (event.node, event.state) == ("retrieve", "finished"):
                break
    await app.resume("first", callbacks=[recorder])


async def in_a_node(app: sleuth.Sleuth, recorder: Recorder) -> None:
    async def through(state: dict[str, Any]) -> dict[str, Any]:
        return {"text": (await app.ask(QUESTION, method="plain-rag")).text}

    builder = StateGraph(dict).add_node("through", through)
    await builder.add_edge(START, "through").compile().ainvoke({}, {"callbacks": [recorder]})


async def in_a_thread(app: sleuth.Sleuth, recorder: Recorder) -> None:
    tool = app.as_tool("plain-rag")
    await asyncio.to_thread(tool.invoke, {"question": QUESTION}, {"callbacks": [recorder]})


@pytest.mark.parametrize(
    ("use", "seen"),
    [
        *((use, [*SEARCH, *CALL]) for use in (ask, subrun, in_a_node)),
        (resumed, CALL),
        (in_a_thread, ["tool", *SEARCH, *CALL]),
    ],
)
async def test_callbacks_receive_the_search_and_the_model_call(app: sleuth.Sleuth, use: Use, seen: list[str]) -> None:
    await use(app, recorder := Recorder())
    assert recorder.seen[: len(seen)] == seen
    assert use is subrun or len(recorder.seen) == len(seen)
    assert all(recorder.parents)


def test_callbacks_without_await_receive_the_run(settings: sleuth.Settings) -> None:
    asked, called = Recorder(), Recorder()
    with sync.open(settings, model=replying(READING, READING), retriever=Fixed()) as app:
        app.ask(QUESTION, method="plain-rag", callbacks=[asked])
        app.as_tool("plain-rag").invoke({"question": QUESTION}, {"callbacks": [called]})
    assert asked.seen == [*SEARCH, *CALL]
    assert called.seen == ["tool", *SEARCH, *CALL]


@pytest.mark.parametrize("wrong", [Recorder(), ["handler"], print])
async def test_callbacks_that_are_no_list_of_handlers_are_refused(app: sleuth.Sleuth, wrong: Any) -> None:
    with pytest.raises(UsageError, match="takes a list of LangChain's callback handlers"):
        await app.ask(QUESTION, method="plain-rag", thread="refused", callbacks=wrong)
    with pytest.raises(UsageError, match="takes a list"):
        await app.resume("refused", callbacks=wrong)
    assert not await app.runs.store.threads.exists("refused")
