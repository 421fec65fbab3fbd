"""useStream in Node with a page of jsdom: @langchain/react's against LangGraph's development server and `sleuth serve`,
that of @langchain/langgraph-sdk against `sleuth serve`.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chat_scene import APPROVED, BACK, PLAIN, archive, knowing, talking
from node_fixture import run_script
from serve_process import LANGGRAPH_SERVERS
from serve_scene import QUESTION, Oracle

APPROVE = {"decisions": [{"type": "approve"}]}
TURNS = [
    {"submit": "Hello!", "config": PLAIN, "messages": 2, "last": "Hello!", "waits": False, "cited": 0},
    {"submit": QUESTION, "config": PLAIN, "messages": 4, "last": "Edric Gannow [1]", "waits": False, "cited": 1},
    {"submit": "Who built it?", "config": PLAIN, "messages": 6, "last": "Built what?", "waits": True, "cited": 0},
    {"respond": "the light", "config": PLAIN, "messages": 8, "last": "Edric Gannow [1]", "waits": False, "cited": 1},
    {"submit": QUESTION, "config": APPROVED, "messages": 10, "last": "The steps", "waits": True, "cited": 0},
    {"respond": APPROVE, "config": APPROVED, "messages": 10, "last": "Edric Gannow", "waits": False, "cited": 1},
]


def check_turns(told: list[dict[str, Any]]) -> None:
    """Check what a hook has after each of the turns."""
    hello, answered, asked_back, replied, planned, approved, *_ = told
    assert [each["error"] for each in told] == [None] * len(told)
    assert len({each["thread"] for each in told}) == 1
    assert hello["messages"] == [["human", "Hello!"], ["ai", "Hello! What would you like to know?"]]
    assert {"Edric ", "Edric Gannow"} & set(answered["partial"]), "the answer is streamed"
    kind, text = answered["messages"][-1]
    assert kind == "ai"
    assert text.startswith("Edric Gannow [1]\n\n[1] The Pellowrig Light: “")
    assert answered["citations"] == ["built by Edric Gannow"]
    assert asked_back["interrupt"] == BACK
    assert [text for _, text in replied["messages"][4:7]] == ["Who built it?", "Built what?", "the light"]
    assert planned["interrupt"]["actionRequests"][0]["args"]["steps"][0]["question"] == QUESTION
    assert [text.split(" [1]")[0] for _, text in approved["messages"][-2:]] == [QUESTION, "Edric Gannow"]


@pytest.mark.nightly
@pytest.mark.parametrize("server", LANGGRAPH_SERVERS)
async def test_hook_of_langchain_react_has_a_conversation(node: str, tmp_path: Path, server: str) -> None:
    async with knowing(pause=0.05) as proxy:
        environment = {**await archive(tmp_path), "SLEUTH_MODEL_URL": proxy.url}
        start, path = LANGGRAPH_SERVERS[server]
        async with start(tmp_path, **environment) as served:
            told = await asyncio.to_thread(run_script, node, "use_stream.mjs", [f"{served.url}{path}", "chat"], TURNS)
    check_turns(told)
    *_, replied, planned, approved = told
    assert replied["messages"][-1][1].startswith("Edric Gannow [1]")
    assert "The steps to answer" in planned["messages"][-1][1]
    assert approved["page"] == [text for _, text in approved["messages"]]


@pytest.mark.nightly
async def test_use_stream_hook_streams_interrupts_and_edits(node: str, tmp_path: Path, oracle: Oracle) -> None:
    oracle.speaks = True
    turns = [
        {"submit": "Hello!", "context": PLAIN},
        {"submit": QUESTION, "context": PLAIN},
        {"submit": "Who built it?", "context": PLAIN},
        {"respond": "the light"},
        {"submit": QUESTION, "context": APPROVED},
        {"respond": APPROVE},
        {"edit": "And who built the light?", "at": 2, "context": PLAIN},
    ]
    async with talking(tmp_path, oracle) as url:
        told = await asyncio.to_thread(run_script, node, "use_stream_runs.mjs", [url], turns)
    assert len(told) == len(turns)
    check_turns(told)
    *_, replied, planned, _, edited = told
    assert replied["interrupt"] is None
    assert planned["messages"][-1][0] == "ai"
    assert [text.split(" [1]")[0] for _, text in edited["messages"]] == [
        "Hello!",
        "Hello! What would you like to know?",
        "And who built the light?",
        "Edric Gannow",
    ]
    assert edited["branches"][2] == 2
