"""`kill -9` and shutdown of the server: runs are resumed, steps are sent once, and text that comes again is reset."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import four_hops
import httpx
import pytest
from model_server import ModelServer, Spoken, chunks, completion, forever
from model_server import serving as model_serving
from scripted_backend import Scripted, proxying
from serve_process import sleuth_serve
from serve_scene import READING, Oracle, Serve, app_of, begin, events_in, steps_in, told, upload

from sleuth.studio.server.state import server_state_of

LIMIT = 300
"""Seconds that anything may take on a busy machine."""

STEPS = ["retrieve", "retrieve", "answer", "answer", "check_evidence", "check_evidence"]


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
    assert names[-4:] == ["step", "step", "step", "answer"]
    assert set(names[3:-4]) == {"delta"}
    assert json.loads("".join(data["text"] for _, data in heard)) == READING
    [request] = oracle.requests
    about = {"thread": thread, "node": "answer", "role": "reader", "call": request.call_id}
    about |= {"method": "plain-rag", "part_of": "", "kind": "delta", "is_answer": True}
    assert all((id, {**data, "text": ""}) == (0, {**about, "text": ""}) for id, data in heard)
    kept = [event for event in events if event[1] != "delta"]
    assert await told(client, thread, words=True) == kept
    assert [id for id, _, _ in kept] == [1, 2, 3, 4, 5, 6, 7]


class Reader:
    """Follows one run over all connections that it takes."""

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self._text = ""

    @property
    def told(self) -> list[tuple[int, str, Any]]:
        """All events, as far as they are complete; deltas and resets have 0 as their id."""
        return events_in(self._text.rpartition("\n\n")[0])

    @property
    def events(self) -> list[tuple[int, str, Any]]:
        return [event for event in self.told if event[0]]

    @property
    def ended(self) -> bool:
        return bool(self.events) and self.events[-1][1] == "answer"

    def resets(self) -> list[str]:
        """The calls whose text was reset."""
        return [data["call"] for _, name, data in self.told if name == "reset"]

    async def read(self, url: str) -> None:
        """To the end of the stream, however it comes."""
        last = max((id for id, _, _ in self.told), default=0)
        path, headers = f"/v1/runs/{self.thread}/events", {"Last-Event-ID": str(last)}
        async with httpx.AsyncClient(base_url=url, timeout=300, trust_env=False) as client:
            with suppress(httpx.TransportError):  # the server is gone
                async with client.stream("GET", path, headers=headers) as stream:
                    async for text in stream.aiter_text():
                        self._text += text
        self._text = self._text.rpartition("\n\n")[0] + "\n\n"


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.02)


@pytest.mark.nightly
async def test_text_of_a_call_that_a_kill_interrupted_is_reset(tmp_path: Path) -> None:
    hold = asyncio.Event()
    reply = completion(json.dumps(READING))
    broken = chunks(reply)[:5]
    begun = "".join(choice["delta"].get("content", "") for part in broken for choice in part["choices"])
    server = ModelServer()
    server.script.extend([Spoken(broken, forever), Spoken(chunks(reply), hold.wait)])
    async with model_serving(server):
        own = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": server.url}
        async with sleuth_serve(tmp_path, **own) as served:
            async with httpx.AsyncClient(base_url=served.url, timeout=300, trust_env=False) as client:
                await upload(client)
                reader = Reader(await begin(client))
            reading = asyncio.create_task(reader.read(served.url))
            await until(lambda: "".join(data["text"] for _, name, data in reader.told if name == "delta") == begun)
            [call] = {data["call"] for _, name, data in reader.told if name == "delta"}
            served.kill()
            await reading
            assert not reader.ended
            assert reader.resets() == []
        async with sleuth_serve(tmp_path, **own) as again:
            reading = asyncio.create_task(reader.read(again.url))
            await until(reader.resets)
            hold.set()
            await reading
    assert reader.ended
    assert reader.events[-1][2]["text"] == "Edric Gannow"
    assert set(reader.resets()) == {call}
    assert [data["node"] for _, name, data in reader.events if name == "step"] == STEPS
    assert [headers["x-sleuth-call"] for headers in server.headers] == [call, call]


RUNS = 4
ARTICLES = {f"{name}.txt": f"The {name} is in the article about the fair." for name in ("light", "keeper", "lamp")}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("database_url", "killed"),
    [
        pytest.param("sqlite", True, id="sqlite-kill"),
        pytest.param("postgres", False, id="postgres-terminate", marks=pytest.mark.postgres),
    ],
    indirect=["database_url"],
)
async def test_killed_server_resumes_runs_and_sends_each_step_once(
    tmp_path: Path, database_url: str | None, killed: bool
) -> None:
    async with proxying(Scripted(four_hops.four_hops, slower=0.1)) as proxy:
        own = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": proxy.url}
        if database_url:
            own |= {"SLEUTH_DATABASE_URL": database_url, "SLEUTH_COLLECTION": uuid4().hex}
        async with sleuth_serve(tmp_path, **own) as served:
            async with httpx.AsyncClient(base_url=served.url, timeout=300, trust_env=False) as client:
                await upload(client, ARTICLES)
                whole = Reader(await begin(client, four_hops.QUESTION, "par-rag"))
                await whole.read(served.url)
                assert whole.ended
                readers = [Reader(await begin(client, four_hops.QUESTION, "par-rag")) for _ in range(RUNS)]
            reading = [asyncio.create_task(reader.read(served.url)) for reader in readers]
            await until(lambda: all(len(reader.events) >= 5 for reader in readers))
            served.process.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
            await asyncio.to_thread(served.process.wait, 300)
            await asyncio.gather(*reading)
            assert not any(reader.ended for reader in readers), "there was nothing left to go on with"
            sent = len(proxy.calls)
        async with sleuth_serve(tmp_path, **own) as again:
            for reader in readers:
                await reader.read(again.url)
                assert reader.ended, again.log.read_text()
                assert [id for id, _, _ in reader.events] == list(range(1, len(reader.events) + 1))
                assert sorted(steps_in(reader.events)) == sorted(steps_in(whole.events))
                assert essence(reader) == essence(whole)
            repeated = set(proxy.ids(0)[:sent]) & set(proxy.ids(sent))
            in_flight = RUNS * 4 if killed else 0
            assert len(repeated) <= in_flight, "more was sent again than what a kill interrupted"


def essence(reader: Reader) -> dict[str, Any]:
    """Return an answer without its ids and times."""
    answer = reader.events[-1][2]
    kept = {name: answer[name] for name in ("status", "text", "citations", "notes")}
    return {**kept, "calls": answer["cost"]["calls"]}
