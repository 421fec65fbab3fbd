import pytest

from sleuth.agents.llm.testing import ScriptedModel, reply
from sleuth.agents.model import Message, Request
from sleuth.agents.roles.planning import Refined
from sleuth.tools.errors import ModelTimeout


def request(role: str = "refiner") -> Request:
    messages = (Message(role="user", content="three words here"),)
    return Request(call_id="1", role=role, prompt="refiner/refine", messages=messages, input={})


async def test_scripted_replies_of_all_kinds_in_order() -> None:
    model = ScriptedModel([Refined(question="q"), {"a": 1}, [1], "text", reply("whole", finish="length")])
    texts = [(await model.call(request()))["text"] for _ in range(5)]
    assert texts == ['{"question":"q"}', '{"a": 1}', "[1]", "text", "whole"]
    assert len(model.requests) == 5
    model.done()


async def test_scripted_replies_by_role() -> None:
    model = ScriptedModel({"planner": ["p"], "refiner": ["r"]})
    assert (await model.call(request("refiner")))["text"] == "r"
    assert (await model.call(request("planner")))["text"] == "p"


async def test_scripted_error_is_raised() -> None:
    with pytest.raises(ModelTimeout):
        await ScriptedModel([ModelTimeout("slow")]).call(request())


async def test_scripted_model_without_replies_fails() -> None:
    with pytest.raises(AssertionError, match="no reply is left for call 1, refiner/refine"):
        await ScriptedModel().call(request())


async def test_scripted_model_done_with_unused_reply_fails() -> None:
    with pytest.raises(AssertionError, match="unused replies"):
        ScriptedModel(["left"]).done()


async def test_scripted_model_counts_words() -> None:
    assert await ScriptedModel().count_tokens(request().messages, role="refiner") == 3
