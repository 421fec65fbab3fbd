"""Approvals seen by several clients of one thread, on LangGraph's development server and on `sleuth serve`."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from chat_scene import APPROVED, archive, client_at, knowing, said, texts
from node_fixture import run_script
from serve_process import LANGGRAPH_SERVERS
from serve_scene import QUESTION

APPROVE, REJECT = ({"decisions": [{"type": kind}]} for kind in ("approve", "reject"))

pytestmark = pytest.mark.nightly


@pytest.fixture(params=LANGGRAPH_SERVERS)
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with knowing(pause=0.3) as proxy:
        environment = {**await archive(tmp_path), "SLEUTH_MODEL_URL": proxy.url}
        start, path = LANGGRAPH_SERVERS[request.param]
        async with start(tmp_path, **environment) as served:
            yield f"{served.url}{path}"


@pytest.mark.parametrize("url", ["sleuth serve"], indirect=True)  # langgraph dev sends no `input.answered`
async def test_approval_in_one_client_disappears_in_the_other(node: str, url: str) -> None:
    told = await asyncio.to_thread(
        run_script, node, "use_stream_two.mjs", [url, "chat", json.dumps(APPROVED), QUESTION]
    )
    waiting, refused, approved, opened = (each["clients"] for each in told)
    assert [each["interrupts"] for each in waiting] == [1, 1], "the client that joined sees the interrupt"
    assert "perhaps" in refused[1]["error"]
    assert [each["interrupts"] for each in approved] == [0, 0]
    assert [each["interrupts"] for each in opened] == [0, 0, 0]
    assert opened[2]["last"].startswith("Edric Gannow [1]")


async def test_waiting_thread_refuses_a_reply_and_still_waits(url: str) -> None:
    sdk = client_at(url)
    thread = (await sdk.threads.create())["thread_id"]
    shown: Any = await sdk.runs.wait(thread, "chat", input=said(QUESTION), context=APPROVED)
    (asked,) = shown["__interrupt__"]
    assert asked["response_schema"]["properties"]["decisions"]["type"] == "array"

    async def interrupts() -> list[Any]:
        state: Any = await sdk.threads.get_state(thread)
        assert state["next"] == ["approve"]
        assert [each for task in state["tasks"] for each in task["interrupts"]] == state["interrupts"]
        return [(each["id"], each["value"], each["response_schema"]) for each in state["interrupts"]]

    before = await interrupts()
    assert before == [(asked["id"], asked["value"], asked["response_schema"])]
    for reply in ({"decisions": []}, {asked["id"]: {"decisions": [{"type": "perhaps"}]}}, 7):
        try:
            refused: Any = await sdk.runs.wait(
                thread, "chat", command={"resume": reply}, context=APPROVED, raise_error=False
            )
            message = refused["__error__"]["message"]
        except httpx.HTTPStatusError as error:
            message = error.response.text
        assert "The reply cannot be used" in message
        assert await interrupts() == before
    still: Any = await sdk.runs.wait(thread, "chat", input=None, context=APPROVED)
    assert [each["id"] for each in still["__interrupt__"]] == [asked["id"]]
    done: Any = await sdk.runs.wait(thread, "chat", command={"resume": {asked["id"]: APPROVE}}, context=APPROVED)
    assert texts(done) == [QUESTION, "Edric Gannow"]


async def test_fork_before_an_approval_takes_the_new_decision(url: str) -> None:
    sdk = client_at(url)
    thread = (await sdk.threads.create())["thread_id"]
    await sdk.runs.wait(thread, "chat", input=said(QUESTION), context=APPROVED)
    done: Any = await sdk.runs.wait(thread, "chat", command={"resume": APPROVE}, context=APPROVED)
    assert done["decision"] == "approve"
    history: Any = await sdk.threads.get_history(thread, limit=100)
    for node in ("approve", "plan"):
        place = next(state for state in history if state["next"] == [node])["checkpoint"]
        again: Any = await sdk.runs.wait(thread, "chat", checkpoint=place, context=APPROVED)
        assert len(again["__interrupt__"]) == 1, f"a fork before {node} waits for a decision of its own"
        rejected: Any = await sdk.runs.wait(thread, "chat", command={"resume": REJECT}, context=APPROVED)
        assert (rejected["decision"], texts(rejected)[-1]) == ("reject", "The plan was not carried out.")
    waiting = next(state for state in history if state["next"] == ["approve"])["checkpoint"]
    branch: Any = await sdk.runs.wait(thread, "chat", command={"resume": REJECT}, checkpoint=waiting, context=APPROVED)
    assert (branch["decision"], texts(branch)[-1]) == ("reject", "The plan was not carried out.")
