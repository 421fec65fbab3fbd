"""A server gives back the memory that many clients needed at once."""

import asyncio
from pathlib import Path

import httpx
import psutil
import pytest

from benchmarks.harness import instant
from benchmarks.servers import free_port, serving, wait_until_up
from sleuth.studio.server.app import create_app
from sleuth.studio.server.main import server_of
from sleuth.tools.settings import Settings

CLIENTS, DOCUMENTS = 40, 20
TEXT = "The light was built by Edric Gannow in 1903. The Kelp Fair is held in Brindlecote every May. " * 40
MIB = 1 << 20


def serve(home: Path, port: int) -> None:
    app = create_app(Settings(home=home, embedder="none"), open_model=instant)
    server_of(app, host="127.0.0.1", port=port).run()


async def upload(client: httpx.AsyncClient) -> None:
    files = [("files", (f"{number}.txt", f"Document {number}. {TEXT}".encode())) for number in range(DOCUMENTS)]
    upload = (await client.post("/v1/documents", files=files)).json()["ingest"]
    await client.get(f"/v1/ingests/{upload}/events")


async def ask(client: httpx.AsyncClient, number: int) -> None:
    for method in ("plain-rag", "par-rag"):
        body = {"question": f"Who built light {number}?", "method": method}
        run = (await client.post("/v1/runs", json=body)).json()["thread"]
        await client.get(f"/v1/runs/{run}/events")


@pytest.mark.nightly
@pytest.mark.timeout(900)
async def test_memory_of_many_clients_is_given_back(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with serving(serve, tmp_path, port) as pid:
        wait_until_up(f"{url}/healthz")
        async with httpx.AsyncClient(base_url=url, timeout=600, trust_env=False) as client:
            await upload(client)
            await ask(client, 0)  # loads the evidence checker
            before = psutil.Process(pid).memory_info().rss
            await asyncio.gather(*(ask(client, number) for number in range(CLIENTS)))
            after = psutil.Process(pid).memory_info().rss
    assert after - before < 50 * MIB
