"""A model server that answers by the request alone, so that a killed run meets the same replies again, and a proxy.

Of equal prompts that differ in their seed only, samples of one thing, the first to arrive gets the first reply, the
next the second; from then on each request keeps its own. The proxy writes down which logical calls reached it.
"""

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import Any, Protocol

import httpx
import model_server
from asgi_server import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from sleuth import prompts

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


KNOWN = {"/v1/models": {"data": [{"id": "scripted"}]}, "/tokenize": {"count": 1000}}
PROBED = {"ready": True}


@dataclass(frozen=True)
class Asked:
    """One chat request: the prompt's name, the words after its instructions, and how many like it came before."""

    prompt: str
    text: str
    repair: bool
    turn: int

    def after(self, label: str) -> str:
        """The rest of the last line that begins so."""
        lines = [line for line in self.text.splitlines() if line.startswith(label)]
        return lines[-1].removeprefix(label) if lines else ""

    def titles(self) -> list[str]:
        """The titles of the sources that are shown."""
        lines = self.text.splitlines()
        return [below for line, below in pairwise(lines) if line.startswith("<source ")]


@dataclass(frozen=True)
class Sure:
    """A plain reply whose tokens have this perplexity."""

    text: str
    perplexity: float


Script = Callable[[Asked], Any]
"""Reply to a request: a text, a `Sure`, a probability of yes as a float, or a value to be serialized as JSON."""


@cache
def _by_instructions() -> dict[str, str]:
    return {text: name for name in prompts.names() if (text := prompts.load(name).system.strip())}


def prompt_of(asked: dict[str, Any]) -> str:
    """The name of the prompt that a request was made from; empty for a probe."""
    first = asked["messages"][0]
    return _by_instructions().get(first["content"], "") if first["role"] == "system" else ""


@dataclass
class Scripted:
    """The backend; every reply takes 20 to 80 ms and `slower` seconds, so that replies to gathered calls cross."""

    script: Script
    slower: float = 0.0
    arrived: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    async def say(self, method: str, path: str, body: bytes) -> Response:
        if path != CHAT:
            return JSONResponse(KNOWN.get(path, {}))
        asked = json.loads(body)
        reply = self.reply(asked)
        await asyncio.sleep(self.slower + 0.02 + sha256(body).digest()[0] / 255 * 0.06)
        return reply

    def reply(self, asked: dict[str, Any]) -> Response:
        """At once."""
        name = prompt_of(asked)
        if not name:
            guided = "response_format" in asked
            return _said(PROBED if guided else Sure("amber", 1.5) if "logprobs" in asked else "amber")
        user = [message["content"] for message in asked["messages"] if message["role"] == "user"]
        turns = self.arrived[json.dumps(asked["messages"])]
        if asked["seed"] not in turns:
            turns.append(asked["seed"])
        return _said(self.script(Asked(name, user[0], len(user) > 1, turns.index(asked["seed"]))))


@dataclass(kw_only=True)
class Mixed:
    """The real server, but for some prompts; it is asked once for equal requests, which have equal replies."""

    url: str
    scripted: Scripted
    prompts: frozenset[str]
    known: dict[str, Response] = field(default_factory=dict)

    async def say(self, method: str, path: str, body: bytes) -> Response:
        if path == CHAT and prompt_of(json.loads(body)) in self.prompts:
            return await self.scripted.say(method, path, body)
        if (key := f"{path} {body!r}") not in self.known:
            async with httpx.AsyncClient(base_url=self.url.removesuffix("/v1"), timeout=300) as client:
                reply = await client.request(method, path, content=body, headers={"Content-Type": "application/json"})
            self.known[key] = Response(reply.content, reply.status_code, media_type="application/json")
        return self.known[key]


def _said(said: Any) -> Response:
    if isinstance(said, float):
        return completion("Yes" if said > 0.5 else "No", tokens=[_judged(said)], finish="length")
    if isinstance(said, Sure):
        return completion(said.text, tokens=[_token(word, -math.log(said.perplexity)) for word in _pieces(said.text)])
    return completion(said if isinstance(said, str) else json.dumps(said))


def _pieces(text: str) -> list[str]:
    return [text[:1], text[1:]] if len(text) > 1 else [text]


def _judged(yes: float) -> dict[str, Any]:
    alike = [_token(word, math.log(share)) for word, share in (("Yes", yes), ("No", 1 - yes)) if share]
    return {**max(alike, key=lambda token: token["logprob"]), "top_logprobs": alike}


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": []}
