"""Follow-ups over the runs API: understood with the conversation before, each a run of its own, found again by all."""

from typing import Any

import httpx
import pytest
from serve_fixture import BOTH_STORES, Serve
from serve_scene import QUESTION, Oracle, begin, told, upload

from sleuth.agents.model import Request
from sleuth.tools.errors import ModelUnavailable

ASKED = "And who built it?"


@pytest.fixture
def oracle() -> Oracle:
    """Oracle that rewrites every follow-up into the question."""
    made = Oracle()
    knows = made.said
    made.said = lambda request: {"question": QUESTION} if request.role == "rewriter" else knows(request)
    return made


async def follow(client: httpx.AsyncClient, after: str, asked: str = ASKED, **more: Any) -> httpx.Response:
    body = {"question": asked, "method": "plain-rag", "after": after, **more}
    return await client.post("/v1/runs", json=body)


async def followed(client: httpx.AsyncClient, after: str) -> str:
    begun = await follow(client, after)
    assert begun.status_code == 201, begun.text
    thread = str(begun.json()["thread"])
    assert (await told(client, thread))[-1][1] == "answer"
    return thread


def rewritings(oracle: Oracle) -> list[Request]:
    return [request for request in oracle.requests if request.role == "rewriter"]


async def test_follow_up_is_rewritten_and_is_a_separate_run(client: httpx.AsyncClient, oracle: Oracle) -> None:
    await upload(client)
    first = await begin(client, "What is the Pellowrig Light?")
    await told(client, first)
    second = await followed(client, first)
    third = await followed(client, second)
    heard = rewritings(oracle)[-1].input
    assert heard["question"] == ASKED
    assert [turn["text"].split(" [1]")[0] for turn in heard["turns"]] == [
        *("What is the Pellowrig Light?", "Edric Gannow"),
        *(QUESTION, "Edric Gannow"),
    ]
    shown = (await client.get(f"/v1/runs/{third}")).json()
    assert shown["thread"]["question"] == shown["answer"]["question"] == QUESTION
    assert (shown["follow_up"]["after"], shown["follow_up"]["asked"]) == (second, ASKED)
    assert (shown["follow_up"]["cost"]["calls"], shown["follow_up"]["warnings"]) == (1, [])
    assert (await client.get(f"/v1/runs/{first}")).json()["follow_up"] is None
    for thread in (first, second, third):
        turns = (await client.get(f"/v1/runs/{thread}/conversation")).json()
        assert [turn["thread"]["id"] for turn in turns] == [first, second, third]
        assert [turn["after"] for turn in turns] == ["", first, second]
        assert [turn["asked"] for turn in turns] == ["What is the Pellowrig Light?", ASKED, ASKED]
        assert turns[2]["answer"] == shown["answer"]


@BOTH_STORES
async def test_conversation_survives_a_restart_without_deleted_runs(serving: Serve) -> None:
    async with serving() as client:
        await upload(client)
        first = await begin(client)
        await told(client, first)
        second = await followed(client, first)
    async with serving() as client:
        third = await followed(client, second)
        assert (await client.delete(f"/v1/runs/{first}")).status_code == 204
        turns = (await client.get(f"/v1/runs/{third}/conversation")).json()
        assert [turn["thread"]["id"] for turn in turns] == [second, third]
        assert (await follow(client, first)).status_code == 404
        await followed(client, second)


async def test_follow_up_on_a_run_without_answer_is_refused(client: httpx.AsyncClient, oracle: Oracle) -> None:
    await upload(client)
    oracle.free.clear()
    first = await begin(client)
    assert (await follow(client, first)).status_code == 409
    assert (await follow(client, "none")).status_code == 404
    oracle.free.set()
    await told(client, first)
    wrong: list[dict[str, Any]] = [{"values": {"nothing": 1}}, {"method": "plane-rag"}, {"thread": first}]
    assert [(await follow(client, first, **each)).status_code for each in wrong] == [400] * 3
    assert (await follow(client, first, "  ")).status_code == 400
    assert rewritings(oracle) == [], "a model was asked for nothing"
    oracle.said = lambda _: ModelUnavailable("The model server is down.")
    assert (await follow(client, first)).status_code == 503
    assert len((await client.get("/v1/runs")).json()) == 1
