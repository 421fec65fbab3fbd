import pytest

from sleuth.agents.llm.testing import ScriptedModel, reply
from sleuth.agents.model import Message, Request
from sleuth.agents.roles.planning import Refined
from sleuth.tools.errors import ModelTimeout


def request(role: str = "refiner") -> Request:
    messages = (Message(role="user", content="three words here"),)
    return Request(call_id="1", role=role, prompt="refiner/refine", messages=messages, input={})


async def test_scripted_replies_of_all_kinds_in_order() -> None:
    whole = reply("whole", finish="length")
    model = ScriptedModel([Refined(question="q"), {"a": 1}, [1], "text", whole, ModelTimeout("slow")])
    texts = [(await model.call(request()))["text"] for _ in range(5)]
    assert texts == ['{"question":"q"}', '{"a": 1}', "[1]", "text", "whole"]
    with pytest.raises(ModelTimeout):
        await model.call(request())
    assert len(model.requests) == 6
    model.done()
    with pytest.raises(AssertionError, match="no reply is left for call 7, refiner/refine"):
        await model.call(request())


async def test_scripted_replies_by_role() -> None:
    model = ScriptedModel({"planner": ["p"], "refiner": ["r"]})
    assert (await model.call(request("refiner")))["text"] == "r"
    with pytest.raises(AssertionError, match="unused replies"):
        model.done()
    assert (await model.call(request("planner")))["text"] == "p"
    assert await model.count_tokens(request().messages, role="refiner") == 3
