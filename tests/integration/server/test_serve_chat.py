"""Chats over the runs API: no message is lost, small talk is no run, and `reader` answers without a model server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from asgi_server import started
from chat_scene import PLAIN, reply_of
from postgres_fixture import BOTH_STORES
from serve_scene import QUESTION, Oracle, Serve, app_of, begin, client_of, told, upload
from served_chat import AGAIN, STOPPED, messages, say, say_held, texts

from sleuth.agents.model import NamedModel
from sleuth.studio.server.app import create_app
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings

DOWN = "No model server answers: start it."


@pytest.fixture
def oracle() -> Oracle:
    """Oracle that chats about the light."""
    return Oracle(reply_of)


async def listed(client: httpx.AsyncClient) -> list[tuple[str, str]]:
    rows = (await client.get("/v1/runs", params={"subruns": False})).json()
    return [(row["question"], row["outcome"]) for row in rows]


WAITING = [QUESTION, AGAIN, "Thanks!"]
ANSWERED = [QUESTION, "Edric Gannow", AGAIN, "Edric Gannow", "Thanks!", "You are welcome! Ask me anything else about"]


def are_answered(found: list[str]) -> bool:
    return [text.split(" your documents")[0] for text in found] == ANSWERED


@BOTH_STORES
async def test_messages_to_a_busy_chat_wait_for_their_turns(serving: Serve, oracle: Oracle) -> None:
    async with serving(filled=True) as client:
        await say_held(client, oracle, QUESTION, **PLAIN)
        await say(client, AGAIN, "Thanks!", **PLAIN)
        waiting = await messages(client)
        assert [message["content"] for message in waiting] == WAITING
        assert [message["additional_kwargs"]["state"] for message in waiting] == ["running", "queued", "queued"]
        of_langgraph = (await client.get("/langgraph/threads/talk/state")).json()["values"]["messages"]
        assert [message["content"] for message in of_langgraph] == WAITING
        oracle.free.set()
        events = await told(client, "talk")
        assert are_answered(await texts(client))
        asked = [message["id"] for message in await messages(client) if message["type"] == "human"]
        turns = [data["turn"] for _, name, data in events if name in ("step", "answer")]
        assert list(dict.fromkeys(turns)) == asked, "the steps of one turn can be told from those of another"
        assert turns == sorted(turns, key=asked.index)


@pytest.mark.nightly
async def test_queued_messages_survive_a_restart(serving: Serve, oracle: Oracle) -> None:
    async with serving(filled=True) as client:
        await say_held(client, oracle, QUESTION, **PLAIN)
        await say(client, AGAIN, "Thanks!", **PLAIN)
    oracle.free.set()
    async with serving() as client:
        await told(client, "talk")
        assert are_answered(await texts(client))


async def test_message_right_after_a_stop_begins_the_next_turn(serving: Serve, oracle: Oracle) -> None:
    async with serving(filled=True) as client:
        await say_held(client, oracle, QUESTION, **PLAIN)
        job = app_of(client).state.server.run_worker.jobs["talk"]
        stop = asyncio.create_task(client.post("/v1/runs/talk/stop"))
        while not job.stopping:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.001)
        await asyncio.gather(stop, say(client, AGAIN, **PLAIN))
        oracle.free.set()
        await told(client, "talk")
        assert await texts(client) == [QUESTION, STOPPED, AGAIN, "Edric Gannow"]
        assert (await messages(client))[1]["additional_kwargs"]["status"] == "stopped"


async def test_answers_keep_their_citations_and_small_talk_changes_no_status(serving: Serve, oracle: Oracle) -> None:
    async with serving(filled=True) as client:
        first = await begin(client)
        await told(client, first)
        run = (await client.get(f"/v1/runs/{first}")).json()
        body = {"question": AGAIN, "method": "plain-rag", "after": first, "thread": "talk"}
        assert (await client.post("/v1/runs", json=body)).status_code == 201
        await told(client, "talk")
        before = await listed(client)
        for text in ("Thanks!", "/help", "/sources"):
            await say(client, text, **PLAIN)
            await told(client, "talk")
        assert await listed(client) == before == [(AGAIN, "answered"), (QUESTION, "answered")]
    async with serving() as client:
        replies = [message for message in await messages(client) if message["type"] == "ai"]
        cited = [message["additional_kwargs"]["citations"] for message in replies]
        assert cited == [run["answer"]["citations"]] * 2 + [[], [], run["answer"]["citations"]]
        assert replies[0]["additional_kwargs"]["thread"] == first
        assert replies[2]["content"].startswith("You are welcome!")
        assert "/sources" in replies[3]["content"]


@pytest.mark.parametrize("method", ["auto", "chat", None])
async def test_greeting_is_no_run(client: httpx.AsyncClient, oracle: Oracle, method: str | None) -> None:
    await upload(client)
    more = {"method": method} if method else {}
    begun = await client.post("/v1/runs", json={"question": "Hello!", "thread": "talk", **more})
    assert begun.status_code == 201, begun.text
    await told(client, "talk")
    assert await texts(client) == ["Hello!", "Hello! What would you like to know?"]
    assert (await listed(client), oracle.requests) == ([], [])
    await say(client, QUESTION, **PLAIN)
    await told(client, "talk")
    assert await listed(client) == [(QUESTION, "answered")]


@asynccontextmanager
async def without_model(folder: Path, oracle: Oracle) -> AsyncIterator[tuple[httpx.AsyncClient, asyncio.Event]]:
    """Serve documents with a model server that answers once the event is set."""
    answers = asyncio.Event()

    @asynccontextmanager
    async def open_model(_settings: Settings) -> AsyncIterator[NamedModel]:
        if not answers.is_set():
            raise ModelUnavailable(DOWN)
        yield oracle

    app = create_app(Settings(home=folder / "home", embedder="none"), open_model=open_model)
    async with started(app), client_of(app) as client:
        await upload(client)
        yield client, answers


async def test_message_without_a_model_server_is_kept_and_sent_again(tmp_path: Path, oracle: Oracle) -> None:
    async with without_model(tmp_path, oracle) as (client, answers):
        for text in (QUESTION, AGAIN):
            await say(client, text, **PLAIN)
            await told(client, "talk")
        said = f"This message was not answered. {DOWN}"
        assert await texts(client) == [QUESTION, said, AGAIN]
        assert (await messages(client))[-1]["additional_kwargs"] == {"state": "failed", "problem": DOWN}
        assert await listed(client) == [(QUESTION, "failed")]
        answers.set()
        assert (await client.post("/v1/runs/talk/resume")).status_code == 202
        await told(client, "talk")
        assert await texts(client) == [QUESTION, said, AGAIN, "Edric Gannow"]


async def test_reader_chats_without_a_model_server(tmp_path: Path, oracle: Oracle) -> None:
    async with without_model(tmp_path, oracle) as (client, _):
        for text in ("Hi!", QUESTION, "And where was he born?", "/help", "Thank you"):
            body = {"question": text, "method": "chat", "thread": "talk"}
            assert (await client.post("/v1/runs", json=body)).status_code == 201
            await told(client, "talk")
        said = await messages(client)
        assert [said[at]["content"].split(" [1]")[0] for at in (3, 5)] == ["Edric Gannow", "Brindlecote"]
        assert said[5]["additional_kwargs"]["question"] == "Where was Edric Gannow born?"
        assert await listed(client) == [(QUESTION, "answered")]
