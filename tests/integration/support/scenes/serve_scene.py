"""A small archive, a model that has read it, the application in this process, and the HTTP client of its owner."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_server import started
from fastapi import FastAPI
from scripted_model import reply

from sleuth.agents.model import Message, NamedModel, Reply, Request
from sleuth.studio.server.app import create_app
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.settings import Settings

KEYS = "anna:apple-secret,ben:plum-secret"
ANNA, BEN = {"Authorization": "Bearer apple-secret"}, {"Authorization": "Bearer plum-secret"}

LIGHT = "The Pellowrig Light was built by Edric Gannow in 1903."
QUESTION = "Who built the Pellowrig Light?"
READING: dict[str, Any] = {
    "answerable": True,
    "answer": "Edric Gannow",
    "citations": [{"source": 1, "quote": "built by Edric Gannow"}],
}
"""A reader's reply to the question."""
FILES = {
    "light.md": f"# The Pellowrig Light\n\n{LIGHT}\n",
    "gannow.txt": "Edric Gannow was born in Brindlecote.",
    "fair.txt": "The Kelp Fair is held in Brindlecote every May.",
}


class Oracle:
    """A model that answers who built the light; while it is held its calls wait, and `said` replaces its reply.

    One that `speaks` streams its words: half of them before it waits.
    """

    context_window = 8192

    def __init__(self, said: Callable[[Request], Any] = lambda _request: READING) -> None:
        self.requests: list[Request] = []
        self.speaks = False
        self.free, self.asked = asyncio.Event(), asyncio.Event()
        self.free.set()
        self.said = said

    def hold(self) -> None:
        """Let the next calls wait until `free` is set."""
        self.asked.clear()
        self.free.clear()

    def name_of(self, role: str) -> str:
        return "oracle"

    async def call(self, request: Request) -> Reply:
        self.requests.append(request)
        said = self.said(request)
        text = said if isinstance(said, str) else json.dumps(said, default=str)
        listener = request.listener if self.speaks else None
        if listener:
            listener.delta(text[: len(text) // 2])
        self.asked.set()
        await self.free.wait()
        if isinstance(said, BaseException):
            raise said
        if listener:
            listener.delta(text[len(text) // 2 :])
        return reply(text, prompt_tokens=100)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return 100


def opening(model: NamedModel) -> Callable[[Settings], AbstractAsyncContextManager[NamedModel]]:
    """A way to a model that is there already."""

    @asynccontextmanager
    async def open_model(_settings: Settings) -> AsyncIterator[NamedModel]:
        yield model

    return open_model


def client_of(app: FastAPI, *, address: str = "127.0.0.1") -> httpx.AsyncClient:
    """Talks to the application without a socket, as somebody at this address would."""
    transport = httpx.ASGITransport(app=app, client=(address, 50_000), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8100", timeout=60)


def app_of(client: httpx.AsyncClient) -> FastAPI:
    """Return the application that a client of this process talks to."""
    app = client._transport.app  # type: ignore[attr-defined]
    assert isinstance(app, FastAPI)
    return app


def events_in(body: str) -> list[tuple[int, str, Any]]:
    """Id, name and data of every server-sent event."""
    found = []
    for block in body.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "data" in lines:
            found.append((int(lines.get("id", 0)), lines.get("event", ""), json.loads(lines["data"])))
    return found


async def send(client: httpx.AsyncClient, files: dict[str, str] = FILES, **options: Any) -> str:
    """Send files; return the id of the upload."""
    sent = [("files", (name, text.encode())) for name, text in files.items()]
    taken = await client.post("/v1/documents", files=sent, **options)
    assert taken.status_code == 202, taken.text
    return str(taken.json()["ingest"])


async def upload(client: httpx.AsyncClient, files: dict[str, str] = FILES, **options: Any) -> dict[str, Any]:
    """Send files and wait until they are ingested; return the end of the upload."""
    return await ended(client, await send(client, files, **options), **options)


async def ended(client: httpx.AsyncClient, ingest: str, **options: Any) -> dict[str, Any]:
    """Wait for the end of an upload and return it."""
    followed = await client.get(f"/v1/ingests/{ingest}/events", **options)
    _, name, last = events_in(followed.text)[-1]
    assert name == "done"
    assert isinstance(last, dict)
    return last


async def begin(client: httpx.AsyncClient, question: str = QUESTION, method: str = "plain-rag", **options: Any) -> str:
    begun = await client.post("/v1/runs", json={"question": question, "method": method}, **options)
    assert begun.status_code == 201, begun.text
    return str(begun.json()["thread"])


async def begin_held(client: httpx.AsyncClient, oracle: Oracle) -> str:
    """Start a run whose model call waits until `oracle.free` is set; return when it waits."""
    oracle.hold()
    thread = await begin(client)
    await asyncio.wait_for(oracle.asked.wait(), 120)
    return thread


def steps_in(events: list[tuple[int, str, Any]]) -> list[tuple[str, str]]:
    """Return the node and the state of each step."""
    return [(data["node"], data["state"]) for _, name, data in events if name == "step"]


async def told(
    client: httpx.AsyncClient, thread: str, after: int = 0, *, words: bool = False, **options: Any
) -> list[tuple[int, str, Any]]:
    """Return the run's events after an id until its end; `words` are included with 0 as their id."""
    headers = {**options.pop("headers", {}), "Last-Event-ID": str(after)}
    body = await client.get(f"/v1/runs/{thread}/events", headers=headers, **options)
    assert body.status_code == 200, body.text
    return [event for event in events_in(body.text) if event[0] or words]


Serve = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def serving(tmp_path: Path, oracle: Oracle, database_url: str | None) -> Serve:
    """Return a function that starts a server; servers started one after the other are one that was restarted.

    One that is `filled` has the documents.
    """

    @asynccontextmanager
    async def serve(
        *, keys: str | None = None, embedder: Embedder | None = None, filled: bool = False, **others: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        own = {"home": tmp_path / "home", "embedder": "hashing" if embedder else "none", "database_url": database_url}
        app = create_app(Settings(api_keys=keys, **{**own, **others}), open_model=opening(oracle), embedder=embedder)
        async with started(app), client_of(app) as opened:
            if filled:
                await upload(opened)
            yield opened

    return serve


@pytest.fixture
async def client(serving: Serve) -> AsyncIterator[httpx.AsyncClient]:
    async with serving() as opened:
        yield opened
