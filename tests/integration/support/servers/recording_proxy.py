"""A proxy in front of a model server that writes down which logical calls reached it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import model_server
from asgi_server import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

CHAT = "/v1/chat/completions"


class Backend(Protocol):
    async def say(self, method: str, path: str, body: bytes) -> Response: ...


@dataclass
class Sent:
    """One request as it arrived: its logical call, body and trace."""

    call: str
    body: bytes
    trace: str


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
        if call and request.url.path == CHAT:
            self.calls.append(Sent(call, body, request.headers.get("traceparent", "")))
        said = await self.backend.say(request.method, request.url.path, body)
        if self.pause is not None and body and json.loads(body).get("stream"):
            return StreamingResponse(_words(bytes(said.body), self.pause), media_type="text/event-stream")
        return said

    async def settle(self) -> None:
        """Takes in what a process that has just died had sent already: some turns of the event loop."""
        for _ in range(20):
            await asyncio.sleep(0.005)

    def ids(self, start: int = 0) -> list[str]:
        """The call ids that arrived, from the `start`-th request on."""
        return [sent.call for sent in self.calls[start:]]


async def _words(reply: bytes, pause: float) -> AsyncIterator[str]:
    """The events of a reply that is streamed word by word."""
    for chunk in model_server.chunks(json.loads(reply)):
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


def completion(text: str, *, tokens: list[dict[str, Any]] | None = None, finish: str = "stop") -> Response:
    """A chat reply of these words, with log-probabilities where tokens are given, for backends without a model."""
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    body = model_server.completion(text, finish=finish) | {"model": "scripted", "usage": usage}
    if tokens:
        body["choices"][0]["logprobs"] = {"content": tokens}
    return JSONResponse(body)
