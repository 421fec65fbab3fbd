"""The messages that a client of LangGraph's API receives."""

from typing import Any

import pytest

from sleuth.graphs.chat.messages import reply_id_to
from sleuth.studio.server.langgraph_api.streams import MessageStream

REPLY = reply_id_to("asked")
ASKED = {"type": "human", "id": "asked", "content": "Who?"}


def tokens(text: str, call: str = "call", node: str = "answer") -> dict[str, Any]:
    return {"kind": "delta", "node": node, "role": "reader", "call": call, "text": text, "is_answer": True}


def stream() -> MessageStream:
    made = MessageStream()
    assert made.complete([ASKED], is_final=False) == []
    return made


def test_stream_withdraws_text_that_is_not_kept() -> None:
    made = stream()
    first = [*made.write(tokens('{"answer": "Wrong"')), *made.write({**tokens(""), "text": "", "call": "other"})]
    reset = [*made.write({"kind": "reset", "node": "answer", "role": "reader", "call": "call", "is_answer": True})]
    second = [*made.write(tokens('{"answer": "Right, but ', "again"))]
    final = {"type": "ai", "id": REPLY, "content": "Not found."}
    last = made.complete([ASKED, final], is_final=True)
    kinds = [(message["type"], message["content"]) for message in [*first, *reset, *second, *last]]
    assert kinds == [
        ("AIMessageChunk", "Wrong"),
        ("remove", ""),
        ("AIMessageChunk", "Right, but "),
        ("remove", ""),
        ("ai", "Not found."),
    ]


def test_reset_of_a_call_without_tokens_keeps_the_text() -> None:
    made = stream()
    assert [*made.write(tokens('{"answer": "Edric'))]
    reset = {"kind": "reset", "node": "answer", "role": "reader", "call": "other", "is_answer": True}
    assert [*made.write(reset)] == []


@pytest.mark.parametrize("written", [[], ['{"answer": "Edric'], ['{"answer": "Edr', 'ic Gannow"}']])
def test_stream_replaces_a_plan_with_the_answer(written: list[str]) -> None:
    made = MessageStream()
    plan = {"type": "ai", "id": REPLY, "content": "1. Who?"}
    assert made.complete([ASKED, plan], is_final=False) == []
    parts = [part for text in written for part in made.write(tokens(text))]
    final = {"type": "ai", "id": REPLY, "content": "Edric Gannow [1]"}
    parts += made.complete([ASKED, final], is_final=True)
    text = ""
    for message in parts:
        text = "" if message["type"] == "remove" else text + message["content"]
    assert parts[0]["type"] == "remove"
    assert text == "Edric Gannow [1]"


def test_stream_of_a_late_client_has_only_the_last_message() -> None:
    made, old = MessageStream(), {"type": "ai", "id": "old", "content": "Hello."}
    new = {"type": "ai", "id": REPLY, "content": "Edric [1]"}
    assert made.complete([old, ASKED, new], is_final=True) == [new]
