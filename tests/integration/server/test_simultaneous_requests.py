"""Requests that arrive simultaneously change the same thread: nothing that was accepted is lost."""

import asyncio
from typing import Any

import httpx
import pytest
from chat_scene import reply_of
from postgres_fixture import BOTH_STORES
from serve_scene import QUESTION, Oracle, Serve, told

from sleuth.agents.model import Request


def small_talk(request: Request) -> Any:
    return "small talk" if request.prompt == "router/route" else reply_of(request)


async def send_beside(client: httpx.AsyncClient, number: int, after: int) -> int:
    """Send a message of a chat next to feedback and changes of its metadata, and check that none is lost.

    `after` is the last event before it; the last one of its run is returned.
    """
    rated = {"rating": "up", "comment": f"comment {number}"}
    message = {"question": f"Message {number}!", "method": "chat", "thread": "talk"}
    replies = await asyncio.gather(
        client.patch("/langgraph/threads/talk", json={"metadata": {f"key-{number}": number}}),
        client.put("/v1/runs/talk/feedback", json=rated),
        client.post("/v1/runs", json=message),
        client.patch("/langgraph/threads/talk", json={"metadata": {f"other-{number}": number}}),
        client.put("/v1/runs/talk/feedback", json=rated),
    )
    assert [reply.status_code for reply in replies] == [200, 204, 201, 200, 204]
    events = await told(client, "talk", after)
    shown = (await client.get("/v1/runs/talk")).json()
    asked = [each["content"] for each in shown["state"]["messages"] if each["type"] == "human"]
    assert asked == ["Hello!", *(f"Message {at}!" for at in range(number + 1))]
    assert shown["thread"]["feedback"] == rated
    metadata = (await client.get("/langgraph/threads/talk")).json()["metadata"]
    assert {f"{key}-{at}": at for key in ("key", "other") for at in range(number + 1)}.items() <= metadata.items()
    return events[-1][0]


@BOTH_STORES
@pytest.mark.parametrize(
    "messages", [10, pytest.param(50, marks=pytest.mark.nightly), pytest.param(200, marks=pytest.mark.faults)]
)
async def test_message_next_to_feedback_and_metadata_is_not_lost(serving: Serve, oracle: Oracle, messages: int) -> None:
    oracle.said = small_talk
    async with serving(filled=True) as client:
        first = {"question": "Hello!", "method": "chat", "thread": "talk"}
        assert (await client.post("/v1/runs", json=first)).status_code == 201
        last = (await told(client, "talk"))[-1][0]
        for number in range(messages):
            last = await send_beside(client, number, last)


@BOTH_STORES
async def test_simultaneous_starts_with_one_name_make_one_run(serving: Serve) -> None:
    async with serving(filled=True) as client:
        for name in ("one", "two", "three"):
            body = {"question": QUESTION, "method": "plain-rag", "thread": name}
            replies = await asyncio.gather(*(client.post("/v1/runs", json=body) for _ in range(20)))
            assert sorted(reply.status_code for reply in replies) == [201] + [409] * 19
            assert (await told(client, name))[-1][1] == "answer"
            created = {"thread_id": f"{name}-empty", "if_exists": "do_nothing"}
            replies = await asyncio.gather(*(client.post("/langgraph/threads", json=created) for _ in range(20)))
            assert {(reply.status_code, reply.json()["thread_id"]) for reply in replies} == {(200, f"{name}-empty")}
            replies = await asyncio.gather(
                *(client.post("/langgraph/threads", json={"thread_id": f"{name}-raised"}) for _ in range(20))
            )
            assert sorted(reply.status_code for reply in replies) == [200] + [409] * 19
