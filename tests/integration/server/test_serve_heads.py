"""The size of a request's head is limited: one connection cannot keep the event loop busy."""

import asyncio
from collections.abc import AsyncIterator
from itertools import cycle, islice

import httpx
import pytest
from serve_process import Served, sleuth_serve

MOST = 16 << 20
"""Bytes that are sent unless the server ends the connection before."""

PIECE = b"a" * 65_536
HEADERS = b"".join(b"x-%d: a\r\n" % number for number in range(6_000))
CHUNKED = b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("serve")
    async with sleuth_serve(folder, SLEUTH_HOME=str(folder / "home"), SLEUTH_EMBEDDER="none") as running:
        yield running


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nx: ", PIECE),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", HEADERS),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", PIECE),
        (b"GET /", PIECE),
        (b"", PIECE),
        (CHUNKED + b"1;", PIECE),
        (CHUNKED + b"0\r\nx: ", PIECE),
    ],
    ids=["value", "count", "name", "target", "method", "chunk-extension", "trailer"],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_endless_head_ends_the_connection(served: Served, begin: bytes, piece: bytes) -> None:
    url = httpx.URL(served.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    sent = 0
    try:
        for part in (begin, *islice(cycle([piece]), MOST // len(piece))):
            writer.write(part)
            await writer.drain()
            sent += len(part)
        reply = await asyncio.wait_for(reader.read(), 60)
        assert reply == b"", "the whole was read"  # refused when the last of it was on its way
    except ConnectionError:
        pass
    finally:
        writer.close()
    assert sent < MOST
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
        assert (await client.get("/healthz")).status_code == 200


@pytest.mark.asyncio(loop_scope="module")
async def test_head_of_usual_size_is_served(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
        reply = await client.get(f"/healthz?{'a' * 16_000}", headers={"Cookie": "b" * 16_000})
        assert reply.status_code == 200
