"""Stopped uploads: ingested files stay complete and indexed, the rest is never ingested."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from blocking_model import CORPUS, LINES, Gated
from hashing_embedder import HashingEmbedder
from lock_holder import held
from serve_scene import Oracle, client_of, events_in, opening, upload

from sleuth.studio.server.app import create_app
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration


@pytest.fixture
def gated() -> Gated:
    return Gated()


@asynccontextmanager
async def serving(settings: Settings, embedder: HashingEmbedder) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(settings, open_model=opening(Oracle()), embedder=embedder)
    async with app.router.lifespan_context(app), client_of(app) as client:
        yield client


async def send(client: httpx.AsyncClient, files: dict[str, str]) -> str:
    sent = [("files", (name, text.encode())) for name, text in files.items()]
    return str((await client.post("/v1/documents", files=sent)).json()["ingest"])


async def stop(client: httpx.AsyncClient, ingest: str) -> Any:
    stopped = await client.post(f"/v1/ingests/{ingest}/stop")
    assert stopped.status_code == 202, stopped.text
    return stopped.json()


async def ended(client: httpx.AsyncClient, ingest: str) -> Any:
    followed = await client.get(f"/v1/ingests/{ingest}/events")
    _, name, last = events_in(followed.text)[-1]
    assert name == "done"
    return last


def whole(settings: Settings) -> int:
    """Return the number of passages, which must be the same in every store."""
    (count, ids), *indexes = held(settings)
    assert indexes == [(count, ids)] * len(indexes)
    return count


async def test_stopped_upload_keeps_ingested_files_and_skips_the_rest(settings: Settings, gated: Gated) -> None:
    async with serving(settings, gated) as client:
        ingest = await send(client, CORPUS)
        await asyncio.to_thread(gated.reached.wait)
        assert (await stop(client, ingest))["status"] == "stopping"
        gated.gate.set()
        last = await ended(client, ingest)
        assert (last["status"], last["read"], last["total"], last["failed"]) == ("stopped", 0, 1, [])
        assert await stop(client, ingest) == last, "a second stop changed something"
        kept = [row["id"] for row in (await client.get("/v1/documents?limit=1000")).json()]
    assert 0 < whole(settings) < LINES
    async with serving(settings, HashingEmbedder()) as client:
        assert (await client.get(f"/v1/ingests/{ingest}")).json() == last
        assert [row["id"] for row in (await client.get("/v1/documents?limit=1000")).json()] == kept, "it was read on"
        again = await upload(client, CORPUS)
        assert again["status"] == "done"
    assert whole(settings) == LINES, "the same upload did not begin anew"


async def test_stopped_upload_is_not_resumed_after_a_restart(settings: Settings, gated: Gated) -> None:
    async with serving(settings, gated) as client:
        ingest = await send(client, CORPUS)
        await asyncio.to_thread(gated.reached.wait)
        await stop(client, ingest)
        asyncio.get_running_loop().call_later(0.2, gated.gate.set)  # or the server could not end
    async with serving(settings, HashingEmbedder()) as client:
        assert (await ended(client, ingest))["status"] == "stopped"
    assert 0 < whole(settings) < LINES
    assert not list((settings.home / "uploads").glob("*/*")), "files were left behind"


async def test_queued_upload_can_be_stopped(settings: Settings, gated: Gated, tmp_path: Path) -> None:
    files = {"one.txt": "The first file.", "two.txt": "The second file."}
    async with serving(settings, gated) as client:
        first = await send(client, files)
        await asyncio.to_thread(gated.reached.wait)
        second = await send(client, {"one.txt": "Something else.", "three.txt": "The third file."})
        assert (await stop(client, second))["status"] == "stopped"
        gated.gate.set()
        assert (await ended(client, first))["status"] == "done"
        assert {row["id"] for row in (await client.get("/v1/documents")).json()} == set(files)
        assert "first" in (await client.get("/v1/documents/one.txt")).json()["text"]


async def test_stop_after_the_last_file_is_done(settings: Settings) -> None:
    async with serving(settings, HashingEmbedder()) as client:
        last = await upload(client, {"one.txt": "The first file."})
        assert await stop(client, last["id"]) == last
        assert (await client.post("/v1/ingests/none/stop")).status_code == 404
