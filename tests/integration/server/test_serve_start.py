"""Starts of servers, one or several over a new store, and limits of the heads of requests."""

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from hashing_embedder import HashingEmbedder
from postgres_fixture import IN_POSTGRES
from process import free_port
from serve_process import COMMAND, Served, sleuth_serve
from serve_scene import QUESTION, Oracle, client_of, opening, upload

from sleuth.studio.server.app import create_app
from sleuth.tools.settings import Settings


def refused(*options: str, **environment: str) -> tuple[int, str]:
    """Run the command; return its exit status and its message."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")}
    run = subprocess.run(
        [*COMMAND, *options], check=False, env=kept | environment, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in run.stderr
    assert "Ctrl-C to stop" not in run.stderr
    return run.returncode, "\n".join(line for line in run.stderr.splitlines() if not line.startswith("{"))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("home", "options", "environment", "expected"),
    [
        ("file", (), {}, (1, "cannot be created")),
        (".", (), {}, (1, "runs.sqlite cannot be read or written")),
        ("home", (), {"SLEUTH_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}, (1, "Connection refused")),
        ("home", ("--host", "nowhere.invalid"), {"SLEUTH_API_KEYS": "anna:apple-secret"}, (2, "nowhere.invalid")),
    ],
)
def test_serve_that_cannot_start_explains_the_error(
    tmp_path: Path, home: str, options: tuple[str, ...], environment: dict[str, str], expected: tuple[int, str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "runs.sqlite").write_bytes(b"no database" * 1_000)
    own = {"SLEUTH_HOME": str(tmp_path / home), **environment}
    status, line = refused("--port", str(free_port()), *options, **own)
    assert (status, expected[1] in line) == (expected[0], True), line


def test_serve_with_used_port_explains_the_error(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        status, line = refused("--port", str(port), SLEUTH_HOME=str(tmp_path / "home"))
    assert status == 2
    assert f"Port {port} at 127.0.0.1" in line and "--port" in line
    assert not (tmp_path / "home").exists(), "looked at the port first"


@pytest.mark.nightly
async def test_serve_prints_its_address_when_ready(tmp_path: Path) -> None:
    async with sleuth_serve(tmp_path, SLEUTH_HOME=str(tmp_path / "home"), SLEUTH_EMBEDDER="none") as served:
        assert f"{served.url} (Ctrl-C to stop)" in served.log.read_text()
    said = served.log.read_text()
    assert "Finished server process" in said
    assert "Traceback" not in said


SERVERS = 6


async def answered(settings: Settings, started: asyncio.Barrier) -> str:
    """Return the answer of the first question, asked when all servers are up."""
    app = create_app(settings, open_model=opening(Oracle()), embedder=HashingEmbedder())
    async with app.router.lifespan_context(app), client_of(app) as client:
        await started.wait()
        await upload(client, {"light.txt": "The Pellowrig Light was built by Edric Gannow in 1903."})
        body: dict[str, Any] = {"model": "plain-rag", "messages": [{"role": "user", "content": QUESTION}]}
        reply = await client.post("/v1/chat/completions", json=body, timeout=60)
        assert reply.is_success, reply.text
        return str(reply.json()["choices"][0]["message"]["content"])


async def all_served(homes: list[Settings]) -> None:
    started = asyncio.Barrier(len(homes))
    async with asyncio.TaskGroup() as servers:
        said = [servers.create_task(answered(settings, started)) for settings in homes]
    assert all("Edric Gannow" in each.result() for each in said)


async def test_first_starts_over_one_home(settings: Settings) -> None:
    await all_served([settings] * SERVERS)


@IN_POSTGRES
async def test_first_starts_over_one_postgres_and_chroma(
    settings: Settings, database_url: str, chroma_url: str, tmp_path: Path
) -> None:
    shared = settings.model_copy(update={"database_url": database_url, "chroma_url": chroma_url})
    await all_served([shared.model_copy(update={"home": tmp_path / str(each)}) for each in range(SERVERS)])


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
