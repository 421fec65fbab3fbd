"""Two servers over one Postgres, each with a SLEUTH_HOME of its own: neither gets into the way of the other's runs."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from serve_fixture import Serve
from serve_scene import Oracle, app_of, begin_held, told, upload

from sleuth.studio.server.runs.queue import RunQueue
from sleuth.studio.server.runs.worker import RunWorker
from sleuth.studio.server.state import server_state_of

pytestmark = [
    pytest.mark.integration,
    pytest.mark.postgres,
    pytest.mark.parametrize("store", ["postgres"], indirect=True),
]

Server = Callable[[str], AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def server(serving: Serve, tmp_path: Path) -> Server:
    """Return a function that starts another server of the same owner."""
    return lambda machine: serving(home=tmp_path / machine)


async def assert_ends_well(client: httpx.AsyncClient, thread: str) -> None:
    events = await told(client, thread)
    assert [id for id, _, _ in events] == [1, 2, 3, 4, 5]
    assert [name for _, name, _ in events] == ["step"] * 4 + ["answer"]
    assert events[-1][2]["text"] == "Edric Gannow"


def refusal(response: httpx.Response) -> tuple[int, Any]:
    return response.status_code, response.json()["error"]["type"]


async def test_run_of_another_server_is_refused_without_loss(server: Server, oracle: Oracle) -> None:
    async with server("one") as one, server("two") as two:
        await upload(one)
        await upload(two)
        thread, other = await begin_held(one, oracle), await begin_held(one, oracle)
        assert refusal(await two.post(f"/v1/runs/{thread}/resume")) == (409, "conflict_error")
        at = (await two.get(f"/v1/runs/{thread}/history")).json()[0]["checkpoint"]
        assert refusal(await two.post(f"/v1/runs/{thread}/fork", json={"at": at})) == (409, "conflict_error")
        assert refusal(await two.delete(f"/v1/runs/{thread}")) == (409, "conflict_error")
        oracle.free.set()
        await assert_ends_well(one, thread)
        await assert_ends_well(one, other)
        await assert_ends_well(two, thread)
        assert (await two.post(f"/v1/runs/{thread}/resume")).status_code == 202
        await assert_ends_well(two, thread)


async def test_text_of_a_reply_is_streamed_by_the_server_that_runs_it(server: Server, oracle: Oracle) -> None:
    oracle.speaks = True
    async with server("one") as one, server("two") as two:
        await upload(one)
        thread = await begin_held(one, oracle)
        following = [asyncio.create_task(told(client, thread, words=True)) for client in (one, two)]
        await asyncio.sleep(0.5)
        oracle.free.set()
        here, elsewhere = [[name for _, name, _ in await each] for each in following]
        assert "delta" in here
        assert elsewhere == ["step"] * 4 + ["answer"]


async def test_run_is_stopped_through_another_server(server: Server, oracle: Oracle) -> None:
    async with server("one") as one, server("two") as two:
        await upload(one)
        thread = await begin_held(one, oracle)
        stopped = await two.post(f"/v1/runs/{thread}/stop")
        assert stopped.status_code == 202
        assert (await told(two, thread))[-1][1] == "stopped"
        assert refusal(await two.post(f"/v1/runs/{thread}/stop")) == (409, "conflict_error")
        oracle.free.set()
        assert (await two.post(f"/v1/runs/{thread}/resume")).status_code == 202
        assert (await told(one, thread))[-1][1] == "answer"


@pytest.mark.nightly
async def test_run_of_a_closed_server_is_resumed_by_another(server: Server, oracle: Oracle) -> None:
    async with server("two") as two:
        async with server("one") as one:
            await upload(one)
            thread, stopped = await begin_held(one, oracle), await begin_held(one, oracle)
            following = asyncio.create_task(told(two, thread))
        stop = asyncio.create_task(two.post(f"/v1/runs/{stopped}/stop"))  # before a server runs it again
        await asyncio.wait([stop], timeout=0.1)
        oracle.free.set()
        assert [name for _, name, _ in await following] == ["step"] * 4 + ["answer"]
        await assert_ends_well(two, thread)
        assert (await stop).status_code == 202
        assert (await told(two, stopped))[-1][1] == "stopped"


@pytest.mark.nightly
async def test_concurrently_recovering_servers_share_the_queue(server: Server, oracle: Oracle) -> None:
    async with server("one") as one, server("two") as two:
        await upload(one)
        await upload(two)
        threads = await left_by_a_third(server, oracle)
        oracle.free.set()
        left = await queued(one)
        begun = await asyncio.gather(worker_of(one).recover(), worker_of(two).recover())
        assert sum(begun) <= len(left)  # the servers look for left runs by themselves too
        for thread in threads:
            await told(one, thread)  # to its end, on either server
            await assert_ends_well(two, thread)
        assert len(oracle.requests) == len(threads)


@pytest.mark.nightly
async def test_run_ended_by_another_server_is_not_recovered(
    server: Server, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another server that has read just before that it was left."""
    async with server("one") as one, server("two") as two:
        await upload(one)
        await upload(two)
        (thread, *_) = await left_by_a_third(server, oracle)
        left = await queued(one)
        await worker_of(one).recover()
        assert (await one.post(f"/v1/runs/{thread}/stop")).status_code == 202
        before = await told(one, thread)
        assert before[-1][1] == "stopped"
        read_before = AsyncMock(return_value=[row for row in left if row[0] == thread])
        monkeypatch.setattr(RunQueue, "pending", read_before)
        assert await worker_of(two).recover() == 0
        assert await told(two, thread) == before
        assert (await two.get(f"/v1/runs/{thread}")).json()["thread"]["status"] == "interrupted"


def worker_of(client: httpx.AsyncClient) -> RunWorker:
    return server_state_of(app_of(client)).run_worker


async def queued(client: httpx.AsyncClient) -> list[tuple[str, str]]:
    engine = server_state_of(app_of(client)).tenants.store.engine
    return await (await asyncio.to_thread(RunQueue, engine)).pending()


async def left_by_a_third(server: Server, oracle: Oracle) -> list[str]:
    """Runs that a server was in the middle of when it ended; model calls still wait."""
    async with server("three") as client:
        await upload(client)
        threads = [await begin_held(client, oracle) for _ in range(4)]
    oracle.requests.clear()
    return threads
