"""Follow-ups over the runs API: a chat that begins with the question and the answer of a run."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from postgres_fixture import BOTH_STORES
from serve_scene import QUESTION, READING, Oracle, Serve, begin, told, upload

FIRST = "What is the Pellowrig Light?"
ASKED = "And who built it?"


@pytest.fixture
def oracle() -> Oracle:
    """Oracle that rewrites every follow-up into the question."""
    replies = {"rewriter": {"question": QUESTION}, "router": "follow-up"}
    return Oracle(lambda request: replies.get(request.role, READING))


async def follow(client: httpx.AsyncClient, after: str, asked: str = ASKED, **more: Any) -> httpx.Response:
    body = {"question": asked, "method": "plain-rag", "after": after, **more}
    return await client.post("/v1/runs", json=body)


@BOTH_STORES
async def test_follow_up_starts_a_chat_that_survives_a_restart(serving: Serve, oracle: Oracle) -> None:
    async with serving(filled=True) as client:
        first = await begin(client, FIRST)
        await told(client, first)
        begun = await follow(client, first, values={"top_k": 2})
        assert begun.status_code == 201, begun.text
        chat = begun.json()["thread"]
        assert (await told(client, chat))[-1][1] == "answer"
    async with serving() as client:
        assert (await client.delete(f"/v1/runs/{first}")).status_code == 204
        shown = (await client.get(f"/v1/runs/{chat}")).json()
        assert (shown["thread"]["method"], shown["thread"]["question"]) == ("chat", ASKED)
        assert shown["thread"]["options"]["values"] == {"method": "plain-rag", "method_settings": {"top_k": 2}}
        assert shown["answer"]["question"] == QUESTION
        again = {"question": "And when?", "method": "chat", "thread": chat}
        assert (await client.post("/v1/runs", json=again)).json()["thread"] == chat
        await told(client, chat)
    *_, heard = [request.input for request in oracle.requests if request.role == "rewriter"]
    assert heard["question"] == "And when?"
    texts = [turn["text"].split(" [1]")[0] for turn in heard["turns"]]
    assert texts == [FIRST, "Edric Gannow", ASKED, "Edric Gannow"]


async def test_follow_up_on_a_run_without_answer_is_refused(client: httpx.AsyncClient, oracle: Oracle) -> None:
    await upload(client)
    oracle.free.clear()
    first = await begin(client)
    assert (await follow(client, first)).status_code == 409
    assert (await follow(client, "none")).status_code == 404
    oracle.free.set()
    await told(client, first)
    wrong: list[dict[str, Any]] = [{"values": {"nothing": 1}}, {"method": "plane-rag"}, {"thread": first}]
    assert [(await follow(client, first, **each)).status_code for each in wrong] == [400, 400, 409]
    assert (await follow(client, first, "  ")).status_code == 400
    assert len((await client.get("/v1/runs")).json()) == 1


async def test_follow_up_of_an_older_release_is_an_ordinary_run(serving: Serve, tmp_path: Path) -> None:
    about = {"after": "first", "conversation": "first", "asked": ASKED, "cost": {"calls": 1}, "warnings": []}
    async with serving(filled=True) as client:
        thread = await begin(client)
        await told(client, thread)
    with closing(sqlite3.connect(tmp_path / "home" / "runs.sqlite")) as connection, connection:
        connection.execute("UPDATE sleuth_threads SET options = ?", [json.dumps({"follow_up": about})])
        connection.execute("CREATE TABLE sleuth_serve_follow_ups (thread, after, conversation, asked, cost, warnings)")
    async with serving() as client:
        shown = (await client.get(f"/v1/runs/{thread}")).json()
        assert shown["answer"]["text"] == "Edric Gannow"
        assert shown["thread"]["options"]["follow_up"] == about
        assert [row["id"] for row in (await client.get("/v1/runs")).json()] == [thread]
