"""The server with all that it keeps in Postgres: as with files, across restarts and for each owner."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from serve_fixture import Serve
from serve_scene import FILES, QUESTION, Oracle, begin, told, upload

pytestmark = [pytest.mark.integration, pytest.mark.postgres]

Started = Callable[[], Any]


@pytest.fixture
def started(serving: Serve, postgres_url: str) -> Started:
    """Return a function that starts a server on Postgres, with owners and a collection of this test only."""
    own = uuid4().hex
    keys = f"anna-{own}:apple-secret,ben-{own}:plum-secret"
    return lambda: serving(keys=keys, database_url=postgres_url, collection=own)


ANNA: dict[str, Any] = {"headers": {"Authorization": "Bearer apple-secret"}}
BEN: dict[str, Any] = {"headers": {"Authorization": "Bearer plum-secret"}}


async def test_documents_and_runs_on_postgres(started: Started) -> None:
    async with started() as client:
        assert (await upload(client, **ANNA))["read"] == len(FILES)
        found = (await client.get("/v1/search", params={"q": "light", "mode": "keyword"}, **ANNA)).json()
        assert found[0]["document"] == "light.md"
        thread = await begin(client, **ANNA)
        events = await told(client, thread, **ANNA)
        assert [id for id, _, _ in events] == [1, 2, 3, 4, 5]
        assert (events[-1][1], events[-1][2]["text"]) == ("answer", "Edric Gannow")
        await fork(client, thread)
        asked = {"model": "plain-rag", "messages": [{"role": "user", "content": QUESTION}]}
        said = (await client.post("/v1/chat/completions", json=asked, **ANNA)).json()
        assert said["choices"][0]["message"]["content"].startswith("Edric Gannow [1]")
        assert (await client.delete("/v1/documents/light.md", **ANNA)).status_code == 204
    async with started() as client:
        assert {each["id"] for each in (await client.get("/v1/documents", **ANNA)).json()} == {*FILES} - {"light.md"}
        assert await told(client, thread, **ANNA) == await told(client, thread, **ANNA)
        assert (await client.get(f"/v1/runs/{thread}", **ANNA)).json()["answer"]["text"] == "Edric Gannow"
        assert (await client.delete(f"/v1/runs/{thread}", **ANNA)).status_code == 204
        assert (await client.get(f"/v1/runs/{thread}", **ANNA)).status_code == 404


async def fork(client: httpx.AsyncClient, thread: str) -> None:
    """Fork with less evidence, run the branch to its end, and find both in the history."""
    history = (await client.get(f"/v1/runs/{thread}/history", **ANNA)).json()
    place = history[1]["checkpoint"]
    evidence = (await client.get(f"/v1/runs/{thread}/checkpoints/{place}", **ANNA)).json()["values"]["evidence"]
    changed = {"at": place, "state": {"evidence": evidence[:1]}}
    assert (await client.post(f"/v1/runs/{thread}/fork", json=changed, **ANNA)).status_code == 201
    assert (await client.post(f"/v1/runs/{thread}/resume", **ANNA)).status_code == 202
    assert (await told(client, thread, 5, **ANNA))[-1][1] == "answer"
    both = (await client.get(f"/v1/runs/{thread}/history", **ANNA)).json()
    assert both[-len(history) :] == history
    assert len(both) == len(history) + 2


async def test_run_on_postgres_survives_stop_and_restart(started: Started, oracle: Oracle) -> None:
    async with started() as client:
        await upload(client, **ANNA)
        oracle.free.clear()
        thread = await begin(client, **ANNA)
        await asyncio.wait_for(oracle.asked.wait(), 120)
        assert (await client.post(f"/v1/runs/{thread}/stop", **ANNA)).json()["status"] == "interrupted"
        assert (await client.post(f"/v1/runs/{thread}/resume", **ANNA)).status_code == 202
        other = await begin(client, **ANNA)
    oracle.free.set()
    async with started() as client:
        for id in (thread, other):
            events = await told(client, id, **ANNA)
            assert events[-1][2]["text"] == "Edric Gannow"
            nodes = [(data["node"], data["state"]) for _, name, data in events if name == "step"]
            assert len(nodes) == len(set(nodes)) == 4, "a step came twice"


async def test_owner_cannot_access_data_of_another_owner(started: Started) -> None:
    async with started() as client:
        await upload(client, **ANNA)
        thread = await begin(client, **ANNA)
        await told(client, thread, **ANNA)
        for path in (f"/v1/runs/{thread}", f"/v1/runs/{thread}/events", "/v1/documents/light.md"):
            assert (await client.get(path, **BEN)).status_code == 404
        assert (await client.get("/v1/runs", **BEN)).json() == []
        assert (await client.get("/v1/documents", **BEN)).json() == []
        await upload(client, {"light.md": "Ben's light is green."}, **BEN)
        assert "Gannow" in (await client.get("/v1/documents/light.md", **ANNA)).json()["text"]
        assert "green" in (await client.get("/v1/documents/light.md", **BEN)).json()["text"]
