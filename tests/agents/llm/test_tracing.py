"""Model calls as callbacks."""

from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from sleuth.agents.llm.testing import reply
from sleuth.agents.llm.tracing import trace_call
from sleuth.agents.model import Reply
from sleuth.tools.errors import ModelError

URL = "http://127.0.0.1:8000/v1"
BODY = {"model": "tiny", "seed": 7, "messages": [{"role": "user", "content": "Where is Varn?"}]}


class State(TypedDict):
    text: str


class Tracer(AsyncCallbackHandler):
    """Handler that records the runs of chat models."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **about: Any
    ) -> None:
        self.seen.append((messages[0][0].text, about["invocation_params"]["seed"], about["parent_run_id"] is not None))

    async def on_llm_end(self, response: LLMResult, **about: Any) -> None:
        self.seen.append(response.generations[0][0].text)

    async def on_llm_error(self, error: BaseException, **about: Any) -> None:
        self.seen.append(str(error))


def graph(outcome: Reply | ModelError) -> Any:
    """Return a graph whose only node makes one call."""

    async def answer(state: State) -> State:
        async with trace_call(BODY, url=URL) as trace:
            if isinstance(outcome, ModelError):
                raise outcome
            trace.reply = outcome
        return State(text=outcome["text"])

    return StateGraph(State).add_sequence([answer]).add_edge(START, "answer").compile()


async def test_trace_call_reports_prompt_and_reply() -> None:
    tracer = Tracer()
    assert await graph(reply("In the east.")).ainvoke({"text": ""}, {"callbacks": [tracer]}) == {"text": "In the east."}
    assert tracer.seen == [("Where is Varn?", 7, True), "In the east."]


async def test_trace_call_reports_a_failure() -> None:
    tracer = Tracer()
    with pytest.raises(ModelError):
        await graph(ModelError("down")).ainvoke({"text": ""}, {"callbacks": [tracer]})
    assert tracer.seen == [("Where is Varn?", 7, True), "down"]


async def test_trace_call_without_callbacks_only_calls() -> None:
    assert [each async for each in graph(reply("x")).astream({"text": ""}, stream_mode="messages")] == []
    assert await graph(reply("x")).ainvoke({"text": ""}) == {"text": "x"}
