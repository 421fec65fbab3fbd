"""The queue of a chat: a reply is checked before it is stored, limits hold for messages that wait, a stop is whole."""

import asyncio

import httpx
import pytest
from chat_scene import APPROVED, PLAIN, reply_of
from postgres_fixture import BOTH_STORES
from serve_scene import QUESTION, Oracle, Serve, app_of, told, upload
from served_chat import AGAIN, STOPPED, messages, say, say_held, send, texts

from sleuth.studio.server.runs import worker

BUILDER = "Edric Gannow"


@pytest.fixture
def oracle() -> Oracle:
    """Oracle that chats about the light."""
    return Oracle(reply_of)


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let queued messages begin soon after the turn before them."""
    monkeypatch.setattr(worker, "LOOK_SECONDS", 0.1)


async def show_plan(client: httpx.AsyncClient) -> list[str]:
    """Ask, and return the messages once the plan waits for an approval."""
    await upload(client)
    await say(client, QUESTION, **APPROVED)
    await told(client, "talk")
    return await texts(client)


@BOTH_STORES
async def test_reply_that_is_refused_is_not_stored(serving: Serve) -> None:
    async with serving() as client:
        shown = await show_plan(client)
        refused = await send(client, "[")
        assert (refused.status_code, await texts(client)) == (400, shown), refused.text
        await say(client, "approve")
        await told(client, "talk")
        assert await texts(client) == [QUESTION, BUILDER]


@BOTH_STORES
async def test_second_reply_is_refused_and_not_asked_as_a_question(serving: Serve, oracle: Oracle) -> None:
    async with serving() as client:
        await show_plan(client)
        oracle.hold()
        clicks = await asyncio.gather(*(send(client, "approve") for _ in range(2)))
        assert sorted(click.status_code for click in clicks) == [201, 409]
        await asyncio.wait_for(oracle.asked.wait(), 120)
        for decision in ("approve", "reject"):
            assert (await send(client, decision)).status_code == 409
        by_resume = await client.post("/v1/runs/talk/resume", json={"reply": "approve"})
        assert by_resume.status_code == 409, by_resume.text
        oracle.free.set()
        await told(client, "talk")
        for late in (
            await send(client, "approve"),
            await client.post("/v1/runs/talk/resume", json={"reply": "reject"}),
        ):
            assert (late.status_code, "does not wait for a reply" in late.text) == (409, True)
        assert await texts(client) == [QUESTION, BUILDER]


@BOTH_STORES
async def test_second_reply_to_a_clarifying_question_is_refused(serving: Serve, oracle: Oracle) -> None:
    async with serving(filled=True) as client:
        await say(client, "Who built it?", **PLAIN)
        await told(client, "talk")
        await say_held(client, oracle, "the light")
        assert (await send(client, "the light")).status_code == 409
        await say(client, "Thanks!")
        oracle.free.set()
        await told(client, "talk")
        assert (await texts(client))[2:5] == ["the light", BUILDER, "Thanks!"]


@BOTH_STORES
async def test_setting_is_checked_after_those_of_queued_messages(serving: Serve, oracle: Oracle) -> None:
    async with serving(filled=True) as client:
        await say_held(client, oracle, QUESTION, **PLAIN)
        assert (await send(client, AGAIN, approve_plan=True)).status_code == 400
        await say(client, "/method par-rag")
        await say(client, AGAIN, approve_plan=True)
        oracle.free.set()
        await told(client, "talk")
        assert (await client.get("/v1/runs/talk")).json()["thread"]["state"] == "waiting"


@BOTH_STORES
async def test_queued_messages_keep_the_quota_of_the_day(serving: Serve, oracle: Oracle) -> None:
    async with serving(tokens_a_day=150, filled=True) as client:
        await say_held(client, oracle, QUESTION, **PLAIN)
        await say(client, *[AGAIN] * 3)
        oracle.free.set()
        await told(client, "talk")
        assert len(oracle.requests) == 2, "those of the first turn"
        last = (await messages(client))[-1]
        about = last["additional_kwargs"]
        assert (last["content"], about["state"]) == (AGAIN, "failed")
        assert about["problem"].startswith("Today's quota of 150 tokens is used up (2")
        assert (await texts(client)).count(AGAIN) == 3


async def test_queue_of_a_chat_is_bounded(serving: Serve, oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_MESSAGES", 3)
    async with serving(filled=True) as client:
        await say_held(client, oracle, QUESTION, **PLAIN)
        await say(client, *[AGAIN] * 3)
        refused = await send(client, AGAIN)
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            409,
            "3 messages of this chat are waiting: wait for an answer, or stop it.",
        )
        assert len(await messages(client)) == 4
        assert (await client.post("/v1/runs/talk/stop")).status_code == 202


@BOTH_STORES
async def test_stop_of_a_chat_includes_its_queued_messages(serving: Serve, oracle: Oracle) -> None:
    async with serving(filled=True) as client:
        await say_held(client, oracle, QUESTION, **PLAIN)
        await say(client, AGAIN, "Thanks!")
        assert (await client.post("/v1/runs/talk/stop")).status_code == 202
        oracle.free.set()
        events = await told(client, "talk")
        assert events[-1][1] == "stopped"
        assert await texts(client) == [QUESTION, STOPPED, AGAIN, STOPPED, "Thanks!"]
        assert (await messages(client))[-1]["additional_kwargs"]["state"] == "stopped"
        assert len(oracle.requests) == 1
        await say(client, AGAIN)
        await told(client, "talk")
        assert (await texts(client))[-2:] == [AGAIN, BUILDER]


async def test_stop_between_two_turns_stops_the_chat(
    serving: Serve, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LOOK_SECONDS", 600.0)  # nothing begins the next turn
    async with serving(filled=True) as client:
        await say_held(client, oracle, QUESTION, **PLAIN)
        await say(client, AGAIN)
        job = app_of(client).state.server.run_worker.jobs["talk"]
        oracle.free.set()
        await asyncio.wait([job.task])
        assert (await client.post("/v1/runs/talk/stop")).status_code == 202
        assert await texts(client) == [QUESTION, BUILDER, AGAIN]
        assert (await messages(client))[-1]["additional_kwargs"]["state"] == "stopped"
        assert (await client.post("/v1/runs/talk/stop")).status_code == 409
