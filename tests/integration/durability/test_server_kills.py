"""`kill -9` of a server before each of its commits: nothing accepted is missing, stored twice, or queued for ever.

The server of each kind of visit is killed before its first commit, its second, and so on. Then it starts again, and
clients look for what it has accepted, and repeat what it has not.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_server import started
from chat_scene import reply_of
from postgres_fixture import BOTH_STORES
from preloaded import child
from serve_child import FILES, THANKS, Visit, visit
from serve_scene import QUESTION, Oracle, app_of, client_of, opening, told, upload
from served_chat import AGAIN, STOPPED

from sleuth.studio.server.app import create_app
from sleuth.studio.server.runs import worker
from sleuth.tools.settings import Settings

KILLS = 10
"""Of each kind of visit; half of them with Postgres, which takes several times as long."""
SECONDS = 60.0
BUILDER, WELCOME = "Edric Gannow", "You are welcome! Ask me anything else about your documents."
ANSWERS = {QUESTION: BUILDER, AGAIN: BUILDER, THANKS: WELCOME}

Accepted = Counter[tuple[str, int]]


def _receive(about: Visit) -> Accepted:
    """Let clients visit a server until it is killed, at the latest after the end; return what it has replied."""
    accepted: Accepted = Counter()
    with child(visit, about) as (_, pipe):
        try:
            while ("end", 0) not in accepted:
                assert pipe.poll(SECONDS), f"a child sent nothing for {SECONDS} s"
                accepted[pipe.recv()] += 1
        except (EOFError, ConnectionResetError):
            pass
    return accepted


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(settings, open_model=opening(Oracle(reply_of)))
    async with started(app), client_of(app) as client:
        yield client


async def ask(client: httpx.AsyncClient, text: str, thread: str, method: str) -> int:
    body = {"question": text, "method": method, "thread": thread}
    return (await client.post("/v1/runs", json=body)).status_code


async def texts(client: httpx.AsyncClient, thread: str) -> list[str]:
    """Return the messages of a chat, or the question and the answer of a run; none if it is not stored."""
    shown: dict[str, Any] = (await client.get(f"/v1/runs/{thread}")).json()
    if "error" in shown:
        return []
    if shown["thread"]["method"] != "chat":
        return [shown["thread"]["question"], shown["answer"]["text"].split(" [1]")[0]]
    return [message["content"].split(" [1]")[0] for message in shown["state"]["messages"]]


async def settle(client: httpx.AsyncClient, thread: str) -> None:
    """Wait until nothing of a run waits or runs, and no upload; raise TimeoutError if one of them stays queued."""
    unfinished = app_of(client).state.server.ingestion.uploads.unfinished
    async with asyncio.timeout(SECONDS):
        await client.get(f"/v1/runs/{thread}/events")
        while await state_of(client, thread) in ("queued", "running", "interrupted") or await unfinished():  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.05)


async def state_of(client: httpx.AsyncClient, thread: str) -> str:
    shown: dict[str, Any] = (await client.get(f"/v1/runs/{thread}")).json()
    return str(shown["thread"]["state"]) if "thread" in shown else ""


async def check_run(client: httpx.AsyncClient, thread: str, accepted: Accepted) -> None:
    found = await texts(client, thread)
    assert found or not accepted[QUESTION, 201]
    assert await ask(client, QUESTION, thread, "plain-rag") == (409 if found else 201)
    await told(client, thread)
    assert await texts(client, thread) == [QUESTION, BUILDER]


async def check_messages(client: httpx.AsyncClient, thread: str, accepted: Accepted) -> None:
    """Check that each accepted message is there once, and one that is there is answered."""
    found = await texts(client, thread)
    asked = found[::2]
    assert [ANSWERS[text] for text in asked] == found[1::2]
    assert asked == [text for text in (QUESTION, AGAIN, THANKS) if text in asked]
    assert not [text for text in ANSWERS if accepted[text, 201] and text not in asked]


async def check_reply(client: httpx.AsyncClient, thread: str, accepted: Accepted) -> None:
    is_waiting = await state_of(client, thread) == "waiting"
    assert not (is_waiting and accepted["approve", 201])
    assert accepted["approve", 201] <= 1
    assert await ask(client, "approve", thread, "chat") == (201 if is_waiting else 409)
    await told(client, thread)
    assert await texts(client, thread) == [QUESTION, BUILDER]


async def check_stop(client: httpx.AsyncClient, thread: str, accepted: Accepted) -> None:
    """Check that an accepted stop includes the queued message but not the one after it, and nothing is missing."""
    found = await texts(client, thread)
    asked = [text for text in found if text in ANSWERS]
    assert asked[:2] == [QUESTION, AGAIN]
    assert asked[2:] == [THANKS] or not (asked[2:] or accepted[THANKS, 201])
    replies = [text for text in found if text not in ANSWERS]
    assert len(replies) >= len(asked) - 1
    assert all(text in (ANSWERS[asked[at]], STOPPED) for at, text in enumerate(replies))
    assert replies[:2] == [STOPPED, STOPPED][: len(replies)] or not accepted["stop", 202]
    assert replies[2:] == [WELCOME][: len(asked) - 2]


async def check_upload(client: httpx.AsyncClient, thread: str, accepted: Accepted) -> None:
    documents = (await client.get("/v1/documents", params={"limit": 1000})).json()
    for number in range(FILES):
        found = [each for each in documents if f"{thread}-{number}.txt" in each["source"]]
        assert len(found) == 1 or not (found or accepted[f"upload {number}", 202])


CHECKS = {
    "run": check_run,
    "message": check_messages,
    "queue": check_messages,
    "reply": check_reply,
    "stop": check_stop,
    "upload": check_upload,
}


@BOTH_STORES
@pytest.mark.nightly
@pytest.mark.parametrize("kind", CHECKS)
async def test_killed_server_keeps_what_it_accepted(
    kind: str, tmp_path: Path, database_url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LOOK_SECONDS", 0.1)
    settings = Settings(home=tmp_path / "home", embedder="none", database_url=database_url)
    async with serving(settings) as client:
        await upload(client)
    for commit in range(1, KILLS + 1, 2 if database_url else 1):
        about = Visit(settings=settings, kind=kind, thread=f"{kind}-{commit}", die_at=commit)
        accepted = await asyncio.to_thread(_receive, about)
        assert ("end", 0) not in accepted, "it was not killed"
        async with serving(settings) as client:
            await settle(client, about.thread)
            await CHECKS[kind](client, about.thread, accepted)
