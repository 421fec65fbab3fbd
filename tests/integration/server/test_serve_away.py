"""A store that becomes unavailable and returns: runs and uploads continue without a restart of the server."""

import asyncio
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from full_disk import full_disk
from postgres_fixture import PostgresServer
from serve_scene import QUESTION, Oracle, Serve, begin, begin_held, events_in, told, upload

SECONDS = 3.0
"""For which it is away."""
ASKED = {"question": QUESTION, "method": "plain-rag"}


@pytest.mark.nightly
async def test_run_survives_stopped_postgres(serving: Serve, own_postgres: PostgresServer, oracle: Oracle) -> None:
    async with serving(database_url=own_postgres.url, filled=True) as client:
        done = await begin(client)
        assert (await told(client, done))[-1][1] == "answer"
        thread = await begin_held(client, oracle)
        await asyncio.to_thread(own_postgres.stop)
        oracle.free.set()
        refused = await client.get(f"/v1/runs/{done}")
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "store_error")
        await asyncio.sleep(SECONDS)
        assert (await client.get("/healthz")).status_code == 200
        await asyncio.to_thread(own_postgres.start)
        events = await told(client, thread)
        if events[-1][1] == "error":  # where it took longer than the run waits
            assert (await client.post(f"/v1/runs/{thread}/resume")).status_code == 202
            events = await told(client, thread)
        else:
            assert [id for id, _, _ in events] == [1, 2, 3, 4, 5, 6, 7]
        assert events[-1][2]["text"] == "Edric Gannow"
        threads = await asyncio.gather(*(begin(client) for _ in range(12)))  # as many as there are connections
        ends = await asyncio.gather(*(told(client, each) for each in threads))
        assert [events[-1][1] for events in ends] == ["answer"] * 12


@pytest.mark.nightly
async def test_upload_survives_stopped_postgres(serving: Serve, own_postgres: PostgresServer) -> None:
    async with serving(database_url=own_postgres.url, filled=True) as client:
        sent = [("files", (f"{n}.txt", f"The text number {n}.".encode())) for n in range(30)]
        taken = (await client.post("/v1/documents", files=sent)).json()["ingest"]
        await asyncio.to_thread(own_postgres.stop)
        await asyncio.sleep(SECONDS)
        await asyncio.to_thread(own_postgres.start)
        _, _, last = events_in((await client.get(f"/v1/ingests/{taken}/events")).text)[-1]
        assert (last["status"], last["read"], last["failed"]) == ("done", 30, [])
        assert len((await client.get("/v1/documents", params={"find": "", "limit": 1000})).json()) == 33
        assert (await upload(client, {"next.txt": "The next text."}))["read"] == 1


async def test_run_survives_a_full_disk(client: httpx.AsyncClient, oracle: Oracle) -> None:
    await upload(client)
    thread = await begin_held(client, oracle)
    with full_disk(), logged(f"The error of run {thread}") as trying:
        oracle.free.set()
        await trying.wait()
        assert (await client.get("/healthz")).json()["running"] == 1
    assert (await told(client, thread))[-1][1] == "error"
    failed = (await client.get(f"/v1/runs/{thread}")).json()["thread"]
    assert (failed["state"], " cannot be " in failed["problem"]) == ("failed", True)
    assert (await client.post(f"/v1/runs/{thread}/resume")).status_code == 202
    assert (await told(client, thread))[-1][2]["text"] == "Edric Gannow"


@contextmanager
def logged(words: str) -> Iterator[asyncio.Event]:
    """Set once a line of the log, written by this event loop, has the words."""
    heard, handler = asyncio.Event(), logging.Handler()
    handler.emit = lambda record: heard.set() if words in record.getMessage() else None  # type: ignore[method-assign]
    logging.getLogger("sleuth").addHandler(handler)
    try:
        yield heard
    finally:
        logging.getLogger("sleuth").removeHandler(handler)


@pytest.mark.parametrize(("name", "route"), [("runs.sqlite", "/v1/runs"), ("catalogue.db", "/v1/documents")])
async def test_deleted_database_is_reported(client: httpx.AsyncClient, tmp_path: Path, name: str, route: str) -> None:
    await upload(client)
    thread = await begin(client)
    assert (await told(client, thread))[-1][1] == "answer"
    await asyncio.to_thread(lambda: [file.unlink() for file in (tmp_path / "home").glob(f"{name}*")])
    replies = await asyncio.gather(*(client.get(route) for _ in range(20)), client.post("/v1/runs", json=ASKED))
    assert {reply.status_code for reply in replies} == {503}
    assert all("was deleted or replaced" in reply.json()["error"]["message"] for reply in replies)
    assert not (tmp_path / "home" / name).exists()


@pytest.mark.parametrize("request_", ["POST /v1/runs", "POST /v1/runs/{}/resume", "DELETE /v1/runs/{}"])
async def test_locks_that_cannot_be_written_are_reported(
    client: httpx.AsyncClient, tmp_path: Path, request_: str
) -> None:
    await upload(client)
    thread = await begin(client)
    await told(client, thread)
    await asyncio.to_thread(shutil.rmtree, tmp_path / "home" / "leases")
    (tmp_path / "home" / "leases").write_text("a file")
    verb, path = request_.format(thread).split()
    refused = await client.request(verb, path, json=ASKED if path == "/v1/runs" else None)
    assert (refused.status_code, "cannot be locked" in refused.text) == (503, True), refused.text
