"""Two servers over one Postgres, each with a SLEUTH_HOME of its own: neither gets into the way of the other's runs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from serve_scene import Oracle, begin, client_of, opening, told, upload

from sleuth.studio.server.app import create_app, server_state_of
from sleuth.studio.server.runs.queue import RunQueue
from sleuth.studio.server.state import ServerState
from sleuth.tools.settings import Settings

pytestmark = [pytest.mark.integration, pytest.mark.postgres]

Server = Callable[[str], AbstractAsyncContextManager[tuple[httpx.AsyncClient, ServerState]]]


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def server(tmp_path: Path, postgres_url: str, oracle: Oracle) -> Server:
    """Return a function that starts another server of the same owner."""
    own = uuid4().hex

    @asynccontextmanager
    async def serve(machine: str) -> AsyncIterator[tuple[httpx.AsyncClient, ServerState]]:
        home = tmp_path / machine
        settings = Settings(home=home, embedder="none", database_url=postgres_url, collection=own, owner=own)
        app = create_app(settings, open_model=opening(oracle))
        async with app.router.lifespan_context(app), client_of(app) as client:
            yield client, server_state_of(app)

    return serve


async def held(client: httpx.AsyncClient, oracle: Oracle) -> str:
    """Start a run whose model call waits; return when it has published three events."""
    oracle.asked.clear()
    oracle.free.clear()
    thread = await begin(client)
    await asyncio.wait_for(oracle.asked.wait(), 120)
    return thread


async def assert_ends_well(client: httpx.AsyncClient, thread: str) -> None:
    events = await told(client, thread)
    assert [id for id, _, _ in events] == [1, 2, 3, 4, 5]
    assert [name for _, name, _ in events] == ["step"] * 4 + ["answer"]
    assert events[-1][2]["text"] == "Edric Gannow"


def refusal(response: httpx.Response) -> tuple[int, Any]:
    return response.status_code, response.json()["error"]["type"]


async def test_run_of_another_server_is_refused_without_loss(server: Server, oracle: Oracle) -> None:
    async with server("one") as (one, _), server("two") as (two, _):
        await upload(one)
        await upload(two)
        thread, other = await held(one, oracle), await held(one, oracle)
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


async def test_run_refused_by_another_server_is_recovered(server: Server, oracle: Oracle) -> None:
    async with server("two") as (two, _):
        async with server("one") as (one, _):
            await upload(one)
            await upload(two)
            thread = await held(one, oracle)
            await two.post(f"/v1/runs/{thread}/resume")
            await told(two, thread)
        oracle.free.set()
        async with server("one") as (again, _):
            await assert_ends_well(again, thread)


async def test_concurrently_recovering_servers_share_the_queue(server: Server, oracle: Oracle) -> None:
    async with server("one") as (one, server_one), server("two") as (two, server_two):
        await upload(one)
        await upload(two)
        threads = await left_by_a_third(server, oracle)
        oracle.free.set()
        left = await asyncio.to_thread(RunQueue(server_one.tenants.store.engine).pending)
        assert set(threads) <= {thread for thread, _ in left}
        begun = await asyncio.gather(server_one.run_worker.recover(), server_two.run_worker.recover())
        assert sum(begun) == len(left)
        for thread in threads:
            await told(one, thread)  # to its end, on either server
            await told(two, thread)
            await assert_ends_well(one, thread)
        assert len(oracle.requests) == len(threads)


async def test_run_ended_by_another_server_is_not_recovered(
    server: Server, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another server that has read just before that it was left."""
    async with server("one") as (one, server_one), server("two") as (two, server_two):
        await upload(one)
        await upload(two)
        (thread, *_) = await left_by_a_third(server, oracle)
        left = await asyncio.to_thread(RunQueue(server_one.tenants.store.engine).pending)
        await server_one.run_worker.recover()
        assert (await one.post(f"/v1/runs/{thread}/stop")).status_code == 202
        before = await told(one, thread)
        assert before[-1][1] == "stopped"
        monkeypatch.setattr(RunQueue, "pending", lambda _: [row for row in left if row[0] == thread])
        assert await server_two.run_worker.recover() == 0
        assert await told(two, thread) == before
        assert (await two.get(f"/v1/runs/{thread}")).json()["thread"]["status"] == "interrupted"


async def left_by_a_third(server: Server, oracle: Oracle) -> list[str]:
    """Runs that a server was in the middle of when it ended; model calls still wait."""
    async with server("three") as (client, _):
        await upload(client)
        threads = [await held(client, oracle) for _ in range(4)]
    oracle.requests.clear()
    return threads
