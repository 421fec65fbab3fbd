"""Streams of a chat in which nothing happens cost the server next to nothing."""

import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from asgi_server import serving as listening
from serve_scene import Serve, app_of, told, upload
from sqlalchemy import event

from benchmarks.harness import instant
from benchmarks.servers import free_port, wait_until_up
from benchmarks.servers import serving as serving_process
from sleuth.studio.server.app import create_app
from sleuth.studio.server.main import server_of
from sleuth.studio.server.runs import worker
from sleuth.studio.server.state import server_state_of
from sleuth.tools.settings import Settings

STREAMS, SECONDS = 2_000, 30
CHAT = {"question": "Hello!", "method": "chat", "thread": "talk"}
BODY = json.dumps({"channels": ["lifecycle"]}).encode()


@asynccontextmanager
async def idle_stream(port: int, limit: asyncio.Semaphore) -> AsyncIterator[asyncio.StreamReader]:
    """Follow the finished chat; the reader is behind what has happened so far."""
    head = f"POST /langgraph/threads/talk/stream/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    async with limit:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
        await reader.readuntil(b'"completed"')
    try:
        yield reader
    finally:
        writer.close()


async def follow(streams: AsyncExitStack, port: int, number: int) -> list[asyncio.StreamReader]:
    """Open streams that are idle."""
    limit = asyncio.Semaphore(20)
    opening = (streams.enter_async_context(idle_stream(port, limit)) for _ in range(number))
    return await asyncio.gather(*opening)


async def test_idle_streams_do_not_read_the_store(serving: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LOOK_SECONDS", 0.05)
    loop, asleep = asyncio.get_running_loop(), asyncio.Event()
    reads = dict.fromkeys(("sleuth_serve_jobs", "sleuth_serve_events"), 0)

    def count(_connection: object, _cursor: object, statement: str, *_others: object) -> None:
        for table in reads:
            reads[table] += table in statement
        if reads["sleuth_serve_jobs"] >= 10:  # each look reads them twice, and the events once
            if reads["sleuth_serve_events"] <= 5:
                loop.call_soon_threadsafe(asleep.set)
            reads.update(dict.fromkeys(reads, 0))  # a stream that has just begun reads once more

    async with serving() as client, listening(app_of(client)) as url, AsyncExitStack() as streams:
        await upload(client)
        assert (await client.post("/v1/runs", json=CHAT)).status_code == 201
        await told(client, "talk")
        readers = await follow(streams, httpx.URL(url).port or 0, 50)
        event.listen(server_state_of(app_of(client)).tenants.store.engine, "before_cursor_execute", count)
        await asyncio.wait_for(asleep.wait(), 60)
        assert (await client.post("/v1/runs", json=CHAT)).status_code == 201
        await asyncio.gather(*(reader.readuntil(b'"running"') for reader in readers))


def serve(home: Path, port: int) -> None:
    app = create_app(Settings(home=home, embedder="none"), open_model=instant)
    server_of(app, host="127.0.0.1", port=port).run()


@contextmanager
def many_files() -> Iterator[None]:
    """Allow more open files; a server that is started meanwhile inherits it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * STREAMS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.nightly
@pytest.mark.timeout(600)
async def test_two_thousand_idle_streams_cost_two_percent_of_a_core(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with many_files(), serving_process(serve, tmp_path, port) as pid:
        wait_until_up(f"{url}/healthz")
        async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as client, AsyncExitStack() as streams:
            await upload(client)
            assert (await client.post("/v1/runs", json=CHAT)).status_code == 201
            await told(client, "talk")
            await follow(streams, port, STREAMS)
            before, began = psutil.Process(pid).cpu_times(), time.monotonic()
            await asyncio.sleep(SECONDS)
            after, waits = psutil.Process(pid).cpu_times(), []
            share = (after.user + after.system - before.user - before.system) / (time.monotonic() - began)
            for _ in range(10):
                began = time.monotonic()
                assert (await client.get("/v1/runs")).status_code == 200
                waits.append(time.monotonic() - began)
    assert share < 0.02
    assert min(waits) < 0.1
