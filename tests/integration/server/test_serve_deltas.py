"""Replies heard over HTTP while they are written: between the steps, kept nowhere, taken back where they come again."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from model_server import ModelServer, Spoken, chunks, completion, forever
from model_server import serving as model_serving
from serve_process import sleuth_serve
from serve_scene import READING, Oracle, Serve, app_of, begin, told, upload
from test_serve_kill import Reader

from sleuth.studio.server.state import server_state_of

LIMIT = 300
"""Seconds that anything may take on a busy machine."""

STEPS = ["retrieve", "retrieve", "answer", "answer"]


@pytest.fixture
async def client(serving: Serve, oracle: Oracle) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a server whose model streams half of a reply and waits."""
    oracle.speaks = True
    oracle.free.clear()
    async with serving() as opened:
        await upload(opened)
        yield opened


async def follow(client: httpx.AsyncClient, thread: str, oracle: Oracle, after: int = 0) -> list[tuple[int, str, Any]]:
    """Return the events of a run whose model continues after half a reply was received."""
    log = server_state_of(app_of(client)).log
    reading = asyncio.create_task(told(client, thread, after, words=True))
    async with asyncio.timeout(LIMIT):
        while not log.want_deltas(thread):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)
    await oracle.asked.wait()
    oracle.free.set()
    return await reading


async def test_deltas_arrive_within_their_step_without_id_and_once(client: httpx.AsyncClient, oracle: Oracle) -> None:
    thread = await begin(client)
    events = await follow(client, thread, oracle)
    names = [name for _, name, _ in events]
    heard = [(id, data) for id, name, data in events if name == "delta"]
    assert names[:3] == ["step", "step", "step"]
    assert names[-2:] == ["step", "answer"]
    assert set(names[3:-2]) == {"delta"}
    assert json.loads("".join(data["text"] for _, data in heard)) == READING
    [request] = oracle.requests
    about = {"thread": thread, "node": "answer", "role": "reader", "call": request.call_id}
    about |= {"method": "plain-rag", "part_of": ""}
    assert all((id, {**data, "text": ""}) == (0, {**about, "text": ""}) for id, data in heard)
    kept = [event for event in events if event[1] != "delta"]
    assert await told(client, thread, words=True) == kept
    assert [id for id, _, _ in kept] == [1, 2, 3, 4, 5]


class Hearing(Reader):
    """Listener that joins deltas: `words` is the text of each call, `resets` are the calls that were reset."""

    def __init__(self, thread: str) -> None:
        super().__init__(thread)
        self.words: dict[str, str] = {}
        self.resets: list[str] = []

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(LIMIT):
            while not condition():  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.02)

    def hear(self, name: str, data: dict[str, str]) -> None:
        if name == "reset":
            self.resets.append(data["call"])
            self.words.pop(data["call"], None)
        else:
            self.words[data["call"]] = self.words.get(data["call"], "") + data["text"]


@pytest.mark.nightly
async def test_text_of_a_call_that_a_kill_interrupted_is_reset(tmp_path: Path) -> None:
    hold = asyncio.Event()
    reply = completion(json.dumps(READING))
    broken = chunks(reply)[:5]
    server = ModelServer()
    server.script.extend([Spoken(broken, forever), Spoken(chunks(reply), hold.wait)])
    async with model_serving(server):
        own = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": server.url}
        async with sleuth_serve(tmp_path, **own) as served:
            async with httpx.AsyncClient(base_url=served.url, timeout=300, trust_env=False) as client:
                await upload(client)
                reader = Hearing(await begin(client))
            reading = asyncio.create_task(reader.read(served.url))
            await reader.until(lambda: "".join(reader.words.values()) == _words(broken))
            [call] = reader.words
            served.kill()
            await reading
            assert not reader.ended
            assert reader.resets == []
        async with sleuth_serve(tmp_path, **own) as again:
            reading = asyncio.create_task(reader.read(again.url))
            await reader.until(lambda: reader.resets)
            hold.set()
            await reading
    assert reader.ended
    assert reader.events[-1][2]["text"] == "Edric Gannow"
    assert set(reader.resets) == {call}
    assert [data["node"] for _, name, data in reader.events if name == "step"] == STEPS
    assert [headers["x-sleuth-call"] for headers in server.headers] == [call, call]


def _words(parts: list[dict[str, Any]]) -> str:
    return "".join(choice["delta"].get("content", "") for part in parts for choice in part["choices"])
