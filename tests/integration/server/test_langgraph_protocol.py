"""LangGraph's streaming protocol under /langgraph: commands, and the events of a thread for any client."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from chat_scene import BACK, GREETING, PLAIN, client_at, said, talking, texts
from serve_scene import KEYS, QUESTION, Oracle

CHANNELS = ["values", "updates", "checkpoints", "lifecycle", "input", "messages", "tools", "custom"]


@pytest.fixture
async def http(tmp_path: Path, oracle: Oracle) -> AsyncIterator[httpx.AsyncClient]:
    oracle.speaks = True
    async with talking(tmp_path, oracle) as url, httpx.AsyncClient(base_url=url, timeout=60) as opened:
        yield opened


async def command(http: httpx.AsyncClient, thread: str, method: str, **params: Any) -> Any:
    body = {"id": 7, "method": method, "params": params}
    replied = await http.post(f"/threads/{thread}/commands", json=body)
    assert replied.status_code == 200, replied.text
    assert replied.json()["id"] == 7
    return replied.json()


async def start(http: httpx.AsyncClient, thread: str, text: str, **configurable: Any) -> Any:
    config = {"configurable": {**PLAIN, **configurable}}
    return await command(http, thread, "run.start", assistant_id="chat", input=said(text), config=config)


async def followed(http: httpx.AsyncClient, thread: str, *, runs: int = 1, **options: Any) -> list[dict[str, Any]]:
    """Return the events of a thread until this number of runs have ended."""
    found: list[dict[str, Any]] = []
    body = {"channels": CHANNELS, **options}
    async with http.stream("POST", f"/threads/{thread}/stream/events", json=body) as stream:
        assert stream.status_code == 200, await stream.aread()
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
                runs -= found[-1]["params"]["data"].get("event") in ("completed", "failed", "interrupted")
            if not runs:
                break
    return found


def data_of(events: list[dict[str, Any]], method: str) -> list[Any]:
    return [event["params"]["data"] for event in events if event["method"] == method]


async def test_protocol_streams_a_run_and_the_ones_after_it(http: httpx.AsyncClient) -> None:
    thread = str(uuid4())
    started = await start(http, thread, "Hello!")
    assert started["result"]["run_id"]
    following = asyncio.create_task(followed(http, thread, runs=2))
    await followed(http, thread)
    await start(http, thread, QUESTION)
    events = await following
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(numbers)
    assert len({event["event_id"] for event in events}) == len(events)
    lifecycle = [data["event"] for data in data_of(events, "lifecycle")]
    assert lifecycle == ["running", "completed"] * 2
    last = data_of(events, "values")[-1]
    assert texts(last) == ["Hello!", GREETING, QUESTION, "Edric Gannow"]
    checkpoints = data_of(events, "checkpoints")
    assert len(checkpoints) == len(data_of(events, "values"))
    assert checkpoints[-1]["parent_id"]
    steps = [item["payload"] for item in data_of(events, "custom") if "state" in item["payload"]]
    assert {step["node"] for step in steps} == {"retrieve", "answer", "check_evidence"}

    words = data_of(events, "messages")
    assert [word["event"] for word in words if word["event"] == "message-start"] == ["message-start"] * 2
    assert len([word for word in words if word["event"] == "content-block-delta"]) > 2
    assert words[-1]["usage"]["input_tokens"] > 0
    finished = [word["content"]["text"] for word in words if word["event"] == "content-block-finish"]
    assert finished == [message["content"] for message in last["messages"] if message["type"] == "ai"]

    again = await followed(http, thread)
    assert data_of(again, "lifecycle") == [{"event": "running", "graph_name": "chat"}, {"event": "completed"}]
    own = {event["event_id"]: event["method"] for event in again if "." not in event["event_id"]}
    assert own.items() <= {event["event_id"]: event["method"] for event in events}.items()
    since = again[0]["seq"]
    assert [event["seq"] for event in await followed(http, thread, since=since) if event["seq"] <= since] == []


async def test_protocol_keeps_ids_of_messages_replies_and_branches(http: httpx.AsyncClient) -> None:
    thread, sdk = str(uuid4()), client_at(str(http.base_url))
    for id, text in (("first", "Hello!"), ("second", "Who built it?")):
        given = {"messages": [{"type": "human", "content": text, "id": id}]}
        config = {"configurable": PLAIN}
        await command(http, thread, "run.start", assistant_id="chat", input=given, config=config)
        events = await followed(http, thread)
    (asked,) = data_of(events, "input.requested")
    assert asked["payload"] == BACK
    assert data_of(events, "lifecycle")[-1] == {"event": "interrupted"}
    waiting = await sdk.threads.get_state(thread)
    assert [message["id"] for message in waiting["values"]["messages"] if message["type"] == "human"] == [
        "first",
        "second",
    ]
    replied = await command(
        http, thread, "input.respond", namespace=[], interrupt_id=asked["interrupt_id"], response="the light"
    )
    assert replied["type"] == "success"
    assert texts(data_of(await followed(http, thread), "values")[-1])[-2:] == ["the light", "Edric Gannow"]
    history = await sdk.threads.get_history(thread, limit=100)
    before = next(state for state in history if texts(state["values"]) == ["Hello!", GREETING])
    await start(http, thread, QUESTION, checkpoint_id=before["checkpoint"]["checkpoint_id"])
    branch = data_of(await followed(http, thread), "values")[-1]
    assert texts(branch) == ["Hello!", GREETING, QUESTION, "Edric Gannow"]


async def test_protocol_failure_is_an_event_of_the_run(http: httpx.AsyncClient, oracle: Oracle) -> None:
    oracle.said = lambda request: ConnectionError("gone")
    thread = str(uuid4())
    await start(http, thread, QUESTION)
    failed = data_of(await followed(http, thread), "lifecycle")[-1]
    assert failed["event"] == "failed"
    assert failed["error"]


@pytest.mark.parametrize(
    ("method", "params", "code", "says"),
    [
        ("state.fork", {}, "not_supported", "the command state.fork. It has run.start and input.respond"),
        ("run.start", {"assistant_id": "chatt"}, "invalid_argument", "Did you mean chat"),
        ("run.start", {"assistant_id": "chat", "input": {}}, "invalid_argument", "one new message"),
        ("run.start", {"assistant_id": "chat", "input": said(" ")}, "invalid_argument", "The question is empty"),
        ("input.respond", {"response": "x"}, "invalid_argument", "no thread"),
    ],
)
async def test_protocol_command_is_refused_with_its_reason(
    http: httpx.AsyncClient, method: str, params: dict[str, Any], code: str, says: str
) -> None:
    refused = await command(http, str(uuid4()), method, **params)
    assert (refused["type"], refused["error"]) == ("error", code)
    assert says in refused["message"]


async def test_protocol_needs_a_thread_of_the_owner_and_known_channels(tmp_path: Path, oracle: Oracle) -> None:
    async with talking(tmp_path, oracle, api_keys=KEYS) as url:
        anna, ben = ({"X-Api-Key": secret} for secret in ("apple-secret", "plum-secret"))
        async with httpx.AsyncClient(base_url=url) as http:
            made = (await http.post("/threads", json={}, headers=anna)).json()["thread_id"]
            path, body = f"/threads/{made}/stream/events", {"channels": ["values"]}
            assert (await http.post(path, json=body, headers=ben)).status_code == 404
            for wrong in ({"channels": []}, {"channels": ["news"]}):
                refused = await http.post(path, json=wrong, headers=anna)
                assert (refused.status_code, "channels" in refused.text) == (400, True)
            begun = await http.post(f"/threads/{made}/commands", json={"id": 1, "method": "input.respond"}, headers=ben)
            assert begun.json()["type"] == "error"
