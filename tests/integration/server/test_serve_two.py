"""Two servers over one Postgres, each with a SLEUTH_HOME of its own: neither gets into the way of the other's runs."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from postgres_fixture import IN_POSTGRES
from serve_scene import Oracle, Serve, begin_held, told, upload

pytestmark = IN_POSTGRES

Server = Callable[[str], AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def server(serving: Serve, tmp_path: Path) -> Server:
    """Return a function that starts another server of the same owner."""
    return lambda machine: serving(home=tmp_path / machine)


async def assert_ends_well(client: httpx.AsyncClient, thread: str) -> None:
    events = await told(client, thread)
    assert [id for id, _, _ in events] == [1, 2, 3, 4, 5, 6, 7]
    assert [name for _, name, _ in events] == ["step"] * 6 + ["answer"]
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
        assert elsewhere == ["step"] * 6 + ["answer"]


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
        assert [name for _, name, _ in await following] == ["step"] * 6 + ["answer"]
        await assert_ends_well(two, thread)
        assert (await stop).status_code == 202
        assert (await told(two, stopped))[-1][1] == "stopped"
