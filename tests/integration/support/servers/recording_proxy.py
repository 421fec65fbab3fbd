"""A proxy in front of a model server that writes down which logical calls reached it, and which replies went out whole.

`Upstream` asks the real server once for each different request and gives the same reply to an equal one: at
temperature 0, in float32 and with its seed, a request has one reply. Only this makes hundreds of kills affordable; the
first run of every question talks to the real server.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

import httpx
import model_server
from asgi_server import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class Said:
    """Response of a server."""

    status: int
    body: bytes


class Backend(Protocol):
    async def say(self, method: str, path: str, body: bytes) -> Said: ...


@dataclass
class Upstream:
    """The real server behind a memory; `pause` is how long a remembered chat reply takes, in seconds."""

    url: str
    pause: float = 0.05
    asked: int = 0
    known: dict[bytes, Said] = field(default_factory=dict)
    locks: defaultdict[bytes, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    async def say(self, method: str, path: str, body: bytes) -> Said:
        key = sha256(method.encode() + path.encode() + body).digest()
        async with self.locks[key]:
            if key not in self.known:
                self.known[key] = await self._ask(method, path, body)
            elif path == CHAT:
                await asyncio.sleep(self.pause)
        return self.known[key]

    async def _ask(self, method: str, path: str, body: bytes) -> Said:
        self.asked += path == CHAT
        async with httpx.AsyncClient(base_url=self.url.removesuffix("/v1"), timeout=300) as client:
            reply = await client.request(method, path, content=body, headers={"Content-Type": "application/json"})
        return Said(reply.status_code, reply.content)


@dataclass
class Sent:
    """One request as it arrived: its logical call, body, trace and reply, and whether a client received that."""

    call: str
    body: bytes
    trace: str = ""
    reply: bytes = b""
    delivered: bool = False


@dataclass
class Proxy:
    """Address for clients; `calls` are the chat requests that have a call id, in order of arrival.

    With `pause` it can stream: that many seconds pass before each word.
    """

    backend: Backend
    pause: float | None = None
    url: str = ""
    calls: list[Sent] = field(default_factory=list)

    async def handle(self, request: Request) -> Response:
        body = await request.body()
        call = request.headers.get("x-sleuth-call", "")
        sent = Sent(call, body, request.headers.get("traceparent", ""))
        if call and request.url.path == CHAT:
            self.calls.append(sent)
        said = await self.backend.say(request.method, request.url.path, body)
        sent.reply = said.body
        sent.delivered = not await request.is_disconnected()
        if self.pause is not None and body and json.loads(body).get("stream"):
            return StreamingResponse(_words(said, self.pause), media_type="text/event-stream")
        return Response(said.body, said.status, media_type="application/json")

    async def settle(self) -> None:
        """Takes in what a process that has just died had sent already: some turns of the event loop."""
        for _ in range(20):
            await asyncio.sleep(0.005)

    def ids(self, start: int = 0) -> list[str]:
        """The call ids that arrived, from the `start`-th request on."""
        return [sent.call for sent in self.calls[start:]]


async def _words(said: Said, pause: float) -> AsyncIterator[str]:
    """The events of a reply that is streamed word by word."""
    for chunk in model_server.chunks(json.loads(said.body)):
        await asyncio.sleep(pause)
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


@asynccontextmanager
async def proxying(backend: Backend, *, pause: float | None = None) -> AsyncIterator[Proxy]:
    """A proxy on a free port, in this event loop; its URL is as in SLEUTH_MODEL_URL."""
    proxy = Proxy(backend, pause)
    app = Starlette(routes=[Route("/{path:path}", proxy.handle, methods=["GET", "POST"])])
    async with serving(app) as url:
        proxy.url = f"{url}/v1"
        yield proxy


def completion(text: str, *, tokens: list[dict[str, Any]] | None = None, finish: str = "stop") -> Said:
    """A chat reply of these words, with log-probabilities where tokens are given, for backends without a model."""
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    body = model_server.completion(text, finish=finish) | {"model": "scripted", "usage": usage}
    if tokens:
        body["choices"][0]["logprobs"] = {"content": tokens}
    return Said(200, json.dumps(body).encode())
