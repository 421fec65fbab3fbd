"""A model server on loopback with scripted replies and faults, its clients, and a listener that records."""

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asgi_server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from sleuth.agents.llm.client import LLMClient
from sleuth.agents.model import Message
from sleuth.agents.model import Request as ModelRequest
from sleuth.tools.settings import Settings

SOON = {"Retry-After": "0.01"}
EVERYTHING = frozenset({"schema", "copies", "choice", "logprobs", "tokenize", "stream"})


def completion(content: str | None = "fine", *, finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "plain",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "total_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }


def status(
    code: int, message: str = "no", headers: dict[str, str] | None = None, error: dict[str, Any] | None = None
) -> Response:
    return JSONResponse({"error": {"message": message, "code": code} | (error or {})}, code, headers=headers or SOON)


async def end() -> None:
    """Nothing more comes before the mark of the end."""


@dataclass
class Spoken:
    """A stream of chunks; `then` is what happens before its end."""

    chunks: list[dict[str, Any]]
    then: Callable[[], Awaitable[object]] = end


class CutOff(Exception):
    """Ends a stream in the middle of it: the server closes the connection."""


async def cut() -> None:
    raise CutOff


async def forever() -> None:
    await asyncio.Event().wait()


def chunks(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """A completion as it is streamed: word by word, its end, its usage."""
    about = {"id": reply["id"], "object": "chat.completion.chunk", "created": 0, "model": reply["model"], "usage": None}
    (choice,) = reply["choices"]
    tokens = (choice.get("logprobs") or {}).get("content") or []
    words = re.findall(r"\S+\s*|\s+", choice["message"]["content"] or "")
    texts = [
        {"index": 0, "delta": {"content": word}, "logprobs": {"content": tokens[at : at + 1]} if tokens else None}
        for at, word in enumerate(words)
    ]
    parts = [
        {"index": 0, "delta": {"role": "assistant", "content": ""}},
        *texts,
        {
            "index": 0,
            "delta": {},
            "logprobs": {"content": tokens[len(words) :]},
            "finish_reason": choice["finish_reason"],
        },
    ]
    return [*({**about, "choices": [part]} for part in parts), {**about, "choices": [], "usage": reply["usage"]}]


Scripted = Callable[[], Any] | Response | Spoken | dict[str, Any]


@dataclass
class ModelServer:
    """`script` is what its next replies are, "fine" when it has ended; probes are answered by what it `supports`."""

    supports: frozenset[str] = EVERYTHING
    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "plain", "max_model_len": 4096}])
    thinks: bool = False
    script: deque[Scripted] = field(default_factory=deque)
    calls: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    running: int = 0
    probes: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
    routes: list[Route] = field(default_factory=list)
    """Further routes, as local servers have them."""

    async def list_models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": self.models})

    async def tokenize(self, request: Request) -> Response:
        if "tokenize" not in self.supports:
            return status(404)
        body = await request.json()
        return JSONResponse({"count": sum(len(message["content"].split()) for message in body["messages"])})

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        if "x-sleuth-call" not in request.headers:
            self.probes += 1
            return await self.probed(body, request)
        self.calls.append(body)
        self.headers.append(dict(request.headers))
        self.running += 1
        self.begun.set()
        try:
            return await self.scripted(request)
        finally:
            self.running -= 1

    async def scripted(self, request: Request) -> Response:
        next_reply = self.script.popleft() if self.script else completion()
        if isinstance(next_reply, Spoken):
            return StreamingResponse(self.spoken(next_reply), media_type="text/event-stream")
        if next_reply is hang:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            self.gone.set()
            return status(499)
        return next_reply if isinstance(next_reply, Response) else await self.replied(next_reply, request)

    async def replied(self, reply: dict[str, Any], request: Request) -> Response:
        if (await request.json()).get("stream") and "stream" in self.supports:
            return StreamingResponse(self.spoken(Spoken(chunks(reply))), media_type="text/event-stream")
        return JSONResponse(reply)

    async def spoken(self, reply: "Spoken") -> AsyncIterator[str]:
        for chunk in reply.chunks:
            yield f"data: {json.dumps(chunk)}\n\n"
        try:
            await reply.then()
        except asyncio.CancelledError:  # the client has gone
            self.gone.set()
            raise
        yield "data: [DONE]\n\n"

    async def probed(self, body: dict[str, Any], request: Request) -> Response:
        if "response_format" in body and "schema" in self.supports:
            as_copied = body["response_format"]["json_schema"]["name"] == "copies" and "copies" in self.supports
            return JSONResponse(completion('{"word" : "amber"}' if as_copied else '{"ready": true}'))
        if "structured_outputs" in body and "choice" in self.supports:
            return JSONResponse(completion(body["structured_outputs"]["choice"][0]))
        reply = completion("<think>well" if self.thinks else "Hello.")
        if "logprobs" in body and "logprobs" in self.supports:
            reply["choices"][0]["logprobs"] = {"content": [{"token": "Hello", "logprob": -0.5, "top_logprobs": []}]}
        return await self.replied(reply, request)


def hang() -> None:
    """Scripted: no reply until the client goes away."""


def garbage(text: str, media_type: str = "application/json") -> Response:
    return Response(text, media_type=media_type)


def truncated() -> Response:
    return garbage(json.dumps(completion())[:-40])


@asynccontextmanager
async def serving(server: ModelServer) -> AsyncIterator[ModelServer]:
    routes = [
        Route("/v1/models", server.list_models),
        Route("/tokenize", server.tokenize, methods=["POST"]),
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
        *server.routes,
    ]
    async with asgi_server.serving(Starlette(routes=routes)) as url:
        server.url = f"{url}/v1"
        yield server


LIMIT = 120
"""Seconds that anything may take on a busy machine."""


class Recorder:
    """Listener that records the texts of a reply; "!" is a reset."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def delta(self, text: str) -> None:
        self.texts.append(text)

    def reset(self) -> None:
        self.texts.append("!")

    async def received(self, text: str = "") -> None:
        """Wait for this text, or for any."""
        async with asyncio.timeout(LIMIT):
            while not self.texts or text not in ("", "".join(self.texts)):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)


def request(text: str = "Where is Varn?", **options: Any) -> ModelRequest:
    fields = {
        "call_id": "call-1",
        "role": "drafter",
        "prompt": "drafter/draft",
        "messages": (Message(role="system", content="Be brief."), Message(role="user", content=text)),
        "input": {},
    }
    return ModelRequest(**fields | options)


@asynccontextmanager
async def connected(server: ModelServer, home: Path, **settings: Any) -> AsyncIterator[LLMClient]:
    """Serve the scripted replies and open a client of the server."""
    async with serving(server), LLMClient.open(Settings(model_url=server.url, home=home, **settings)) as client:
        yield client
