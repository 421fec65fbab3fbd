"""`kill -9` and shutdown of the server: every run is resumed at the next start, every step is sent once."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import four_hops
import httpx
import pytest
from recording_proxy import proxying
from scripted_backend import Scripted
from serve_process import Served, sleuth_serve
from serve_scene import upload

RUNS = 4
ARTICLES = {f"{name}.txt": f"The {name} is in the article about the fair." for name in ("light", "keeper", "lamp")}


class Reader:
    """Follows one run over all connections that it takes."""

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self.events: list[tuple[int, str, Any]] = []

    @property
    def ended(self) -> bool:
        return bool(self.events) and self.events[-1][1] == "answer"

    async def read(self, url: str) -> None:
        """To the end of the stream, however it comes."""
        last = str(self.events[-1][0]) if self.events else "0"
        async with httpx.AsyncClient(base_url=url, timeout=300, trust_env=False) as client:
            try:
                path, headers = f"/v1/runs/{self.thread}/events", {"Last-Event-ID": last}
                async with client.stream("GET", path, headers=headers) as stream:
                    async for block in _blocks(stream):
                        if "id" in block:
                            self.events.append((int(block["id"]), block["event"], json.loads(block["data"])))
                        else:
                            self.hear(block["event"], json.loads(block["data"]))
            except httpx.TransportError:
                pass  # the server is gone

    def hear(self, name: str, data: dict[str, str]) -> None:
        """Return the stored events, without deltas and resets."""

    def steps(self) -> list[tuple[str, str]]:
        return sorted((data["node"], data["state"]) for _, name, data in self.events if name == "step")


async def _blocks(stream: httpx.Response) -> AsyncIterator[dict[str, str]]:
    block: dict[str, str] = {}
    async for line in stream.aiter_lines():
        if not line and "data" in block:
            yield block
            block = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            block[name] = value


async def begin(client: httpx.AsyncClient) -> Reader:
    begun = await client.post("/v1/runs", json={"question": four_hops.QUESTION, "method": "par-rag"})
    assert begun.status_code == 201, begun.text
    return Reader(begun.json()["thread"])


async def reach(readers: list[Reader], number: int) -> None:
    """Wait until every run has published this many events."""
    async with asyncio.timeout(300):
        while any(len(reader.events) < number for reader in readers):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.02)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("database_url", "killed"),
    [
        pytest.param("sqlite", True, id="sqlite-kill"),
        pytest.param("postgres", False, id="postgres-terminate", marks=pytest.mark.postgres),
    ],
    indirect=["database_url"],
)
async def test_killed_server_resumes_runs_and_sends_each_step_once(
    tmp_path: Path, database_url: str | None, killed: bool
) -> None:
    async with proxying(Scripted(four_hops.four_hops, slower=0.1)) as proxy:
        own = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": proxy.url}
        if database_url:
            own |= {"SLEUTH_DATABASE_URL": database_url, "SLEUTH_COLLECTION": uuid4().hex}
        async with sleuth_serve(tmp_path, **own) as served:
            async with httpx.AsyncClient(base_url=served.url, timeout=300, trust_env=False) as client:
                await upload(client, ARTICLES)
                whole = await begin(client)
                await whole.read(served.url)
                assert whole.ended
                readers = [await begin(client) for _ in range(RUNS)]
            reading = [asyncio.create_task(reader.read(served.url)) for reader in readers]
            await reach(readers, 5)
            await end(served, politely=not killed)
            await asyncio.gather(*reading)
            assert not any(reader.ended for reader in readers), "there was nothing left to go on with"
            sent = len(proxy.calls)
        async with sleuth_serve(tmp_path, **own) as again:
            for reader in readers:
                await reader.read(again.url)
                assert reader.ended, again.log.read_text()
                assert [id for id, _, _ in reader.events] == list(range(1, len(reader.events) + 1))
                assert reader.steps() == whole.steps()
                assert essence(reader) == essence(whole)
            repeated = set(proxy.ids(0)[:sent]) & set(proxy.ids(sent))
            in_flight = RUNS * 4 if killed else 0
            assert len(repeated) <= in_flight, "more was sent again than what a kill interrupted"


def essence(reader: Reader) -> dict[str, Any]:
    """Return an answer without its ids and times."""
    answer = reader.events[-1][2]
    return {name: answer[name] for name in ("status", "text", "citations", "notes")} | {
        "calls": answer["cost"]["calls"]
    }


async def end(served: Served, *, politely: bool) -> None:
    if not politely:
        served.kill()
        return
    served.process.terminate()
    await asyncio.to_thread(served.process.wait, 300)
