"""Servers that start simultaneously on a new store: all of them serve."""

import asyncio
from pathlib import Path
from typing import Any

from hashing_embedder import HashingEmbedder
from postgres_fixture import IN_POSTGRES
from serve_scene import QUESTION, Oracle, client_of, opening, upload

from sleuth.studio.server.app import create_app
from sleuth.tools.settings import Settings

SERVERS = 6


async def served(settings: Settings, started: asyncio.Barrier) -> str:
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
        said = [servers.create_task(served(settings, started)) for settings in homes]
    assert all("Edric Gannow" in each.result() for each in said)


async def test_first_starts_over_one_home(settings: Settings) -> None:
    await all_served([settings] * SERVERS)


@IN_POSTGRES
async def test_first_starts_over_one_postgres_and_chroma(
    settings: Settings, database_url: str, chroma_url: str, tmp_path: Path
) -> None:
    shared = settings.model_copy(update={"database_url": database_url, "chroma_url": chroma_url})
    await all_served([shared.model_copy(update={"home": tmp_path / str(each)}) for each in range(SERVERS)])
