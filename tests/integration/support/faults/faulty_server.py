"""A proxy for a model server that randomly refuses, disconnects, stalls or sends nonsense.

It implements HTTP itself, so that a connection can end at any byte. Each run has its own URL and its own faults: which
request fails, and how, depends on the run's seed, on the request and on its number of repetitions, not on other runs.
The requests are forwarded to any `Backend`, scripted or real.
"""

import asyncio
import json
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from random import Random
from typing import Any

from model_server import chunks
from recording_proxy import CHAT, Backend

CALL_HEADER = "x-sleuth-call"


class Fault(StrEnum):
    """Faults of a request."""

    CLOSED = "closed without a word"
    RESET = "reset in the middle of the reply"
    NO_HTTP = "not HTTP"
    BUSY_FOR = "429 with Retry-After"
    BUSY = "429"
    FAILING = "500"
    UNAVAILABLE = "503"
    SILENT = "silence"
    SILENT_MIDWAY = "silence in the middle of the reply"
    HALF_BODY = "half a JSON body"
    EMPTY = "no choices"
    NULL = "a body without what was asked for"
    DOUBLED_END = "doubled events without words"
    DOUBLED = "doubled events"
    HALF_REPLY = "half a JSON reply"
    WRONG_SCHEMA = "a reply of another schema"


CONTENT = frozenset({Fault.DOUBLED, Fault.HALF_REPLY, Fault.WRONG_SCHEMA})
"""A valid reply with other content: the result of the run may differ."""

_OF_STREAMS = frozenset({Fault.DOUBLED, Fault.DOUBLED_END})
_OF_COMPLETIONS = CONTENT | _OF_STREAMS | {Fault.EMPTY, Fault.NULL}
"""Faults of replies to model calls only, not to requests about the server or its capabilities."""


@dataclass
class FaultPlan:
    """Faults of one run; `rate` is the share of its requests that fail, none while they are not `enabled`.

    `injected`: the faults that happened. `calls`: the ids of calls as they arrived; `silent`: those of them that got no
    reply. `silences`: how long a client waited in each, in seconds.
    """

    seed: int
    rate: float = 0.0
    enabled: bool = True
    injected: Counter[Fault] = field(default_factory=Counter)
    calls: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    silences: list[float] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)

    def random(self, request: "ModelRequest") -> Random:
        """Return the random numbers of a request, which are others when it is repeated."""
        key = sha256(request.path.encode() + request.body).hexdigest()
        self._seen[key] += 1
        return Random(f"{self.seed} {key} {self._seen[key]}")

    def choose(self, request: "ModelRequest", random: Random) -> Fault | None:
        """Choose the fault of a request: one that can be applied to its reply."""
        if not self.enabled or random.random() >= self.rate:
            return None
        return random.choice([fault for fault in Fault if request.may_have(fault)])


@dataclass(frozen=True)
class ModelRequest:
    """A request, and the id of the model call that it is for, if any."""

    method: str
    run: str
    path: str
    call: str
    body: bytes

    @property
    def streamed(self) -> bool:
        return self.path == CHAT and bool(json.loads(self.body).get("stream"))

    def may_have(self, fault: Fault) -> bool:
        if not self.call:
            return fault not in _OF_COMPLETIONS
        return self.streamed or fault not in _OF_STREAMS

    def plain(self) -> bytes:
        """Return the body of the same request without streaming."""
        if not self.streamed:
            return self.body
        body = json.loads(self.body)
        return json.dumps({name: body[name] for name in body if name not in ("stream", "stream_options")}).encode()


_INSTEAD = frozenset({Fault.SILENT, Fault.CLOSED, Fault.NO_HTTP})
"""Faults in place of a reply."""
_STATUS = {Fault.BUSY_FOR: 429, Fault.BUSY: 429, Fault.FAILING: 500, Fault.UNAVAILABLE: 503}
_NONSENSE = [{"unexpected": [1, None]}, [[]], 17, {"answer": {"answer": []}}, {"steps": "none", "citations": {}}]


class FaultyServer:
    """The server that clients connect to; `open` is the number of requests in progress."""

    def __init__(self, backend: Backend) -> None:
        self.open = 0
        self.plans: dict[str, FaultPlan] = {}
        self._backend = backend
        self._port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def url(self, run: str, plan: FaultPlan) -> str:
        """The base URL, as in SLEUTH_MODEL_URL."""
        self.plans[run] = plan
        return f"http://127.0.0.1:{self._port}/{run}/v1"

    async def start(self) -> None:
        """Listen, after a stop at the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop: close all connections and refuse new ones."""
        assert self._server
        self._server.close()
        for writer in [*self._writers]:
            _reset(writer)
        await self._server.wait_closed()
        while self._writers:  # noqa: ASYNC110 - their tasks end by themselves
            await asyncio.sleep(0.001)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer(await _request(reader), reader, writer):
                    pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer(self, request: ModelRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer a request, with or without a fault; return whether the connection can be reused."""
        plan = self.plans[request.run]
        if request.call:
            plan.calls.append(request.call)
        random = plan.random(request)
        fault = plan.choose(request, random)
        self.open += 1
        try:
            return await _Replying(request, random, reader, writer, plan).reply(self._backend, fault)
        finally:
            self.open -= 1


@dataclass
class _Replying:
    request: ModelRequest
    random: Random
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    plan: FaultPlan

    async def reply(self, backend: Backend, fault: Fault | None) -> bool:
        reply = None if fault in _INSTEAD or fault in _STATUS else await self._reply_of(backend)
        if fault:  # not where the client has left before
            self.plan.injected[fault] += 1
        if reply:
            return await self._send_reply(reply.status, _corrupted(reply.body, fault, self.random), fault)
        if fault is Fault.SILENT:
            return await self._wait()
        if fault is Fault.CLOSED:
            _reset(self.writer)
            return False
        if fault is Fault.NO_HTTP:
            self.writer.write(b"\x15\x03\x01\x00\x02\x02P")
            return False
        assert fault in _STATUS
        return await self._refuse(_STATUS[fault], "Retry-After: 0.05\r\n" if fault is Fault.BUSY_FOR else "")

    async def _reply_of(self, backend: Backend) -> Any:
        """Return the reply of the backend, unless the client disconnects before."""
        replying = asyncio.create_task(backend.say(self.request.method, self.request.path, self.request.plain()))
        leaving = asyncio.create_task(_left(self.reader))
        await asyncio.wait([replying, leaving], return_when=asyncio.FIRST_COMPLETED)
        for each in (replying, leaving):
            each.cancel()
        await asyncio.wait([replying, leaving])
        if replying.cancelled():
            raise ConnectionResetError
        return replying.result()

    async def _refuse(self, status: int, headers: str) -> bool:
        body = json.dumps({"error": {"message": "an injected fault", "code": status}}).encode()
        await self._send(_head(status, "application/json", len(body), headers) + body)
        return True

    async def _send_reply(self, status: int, body: bytes, fault: Fault | None) -> bool:
        streamed = self.request.streamed and status == 200 and fault not in (Fault.HALF_BODY, Fault.EMPTY, Fault.NULL)
        content = _events(json.loads(body), fault) if streamed else body
        if fault is Fault.HALF_BODY:
            content = content[: self.random.randrange(1, len(content))]
        media_type = "text/event-stream" if streamed else "application/json"
        whole = _head(status, media_type, len(content)) + content
        if fault not in (Fault.RESET, Fault.SILENT_MIDWAY):
            await self._send(whole)
            return True
        await self._send(whole[: self.random.randrange(1, len(whole))])
        if fault is Fault.SILENT_MIDWAY:
            return await self._wait()
        _reset(self.writer)
        return False

    async def _wait(self) -> bool:
        """Stall until the client has disconnected."""
        self.plan.silent += [self.request.call] if self.request.call else []
        began = time.monotonic()
        await _left(self.reader)
        self.plan.silences.append(time.monotonic() - began)
        return False

    async def _send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


def _corrupted(body: bytes, fault: Fault | None, random: Random) -> bytes:
    """A completion with invalid content."""
    if fault is Fault.NULL:
        return b"{}"
    if fault not in (Fault.EMPTY, Fault.HALF_REPLY, Fault.WRONG_SCHEMA):
        return body
    completion = json.loads(body)
    if fault is Fault.EMPTY:
        return json.dumps({**completion, "choices": []}).encode()
    (choice,) = completion["choices"]
    text = choice["message"]["content"]
    changed = json.dumps(random.choice(_NONSENSE)) if fault is Fault.WRONG_SCHEMA else text[: len(text) // 2]
    finish = "stop" if fault is Fault.WRONG_SCHEMA else "length"
    message = {"role": "assistant", "content": changed}
    return json.dumps({**completion, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode()


def _events(completion: dict[str, Any], fault: Fault | None) -> bytes:
    """A completion as a stream of events."""
    parts = [json.dumps(chunk) for chunk in chunks(completion)] + ["[DONE]"]
    events = [f"data: {part}\n\n" for part in parts]
    if fault is Fault.DOUBLED:
        events = [event for each in events for event in (each, each)]
    if fault is Fault.DOUBLED_END:  # the opening one, and from the finish on
        events = [events[0], *events[:-3], *(event for each in events[-3:] for event in (each, each))]
    return "".join(events).encode()


def _head(status: int, media_type: str, length: int, headers: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status} whatever\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{headers}\r\n"
    ).encode()


async def _request(reader: asyncio.StreamReader) -> ModelRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    _, run, path = target.split("/", 2)
    return ModelRequest(method, run, f"/{path}", headers.get(CALL_HEADER, ""), body)


async def _left(reader: asyncio.StreamReader) -> None:
    """Wait until the client has closed its side; it sends nothing more meanwhile."""
    with suppress(ConnectionError):
        await reader.read(1)


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a killed server would."""
    found: socket.socket | None = writer.get_extra_info("socket")
    if found:
        with suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def faulty_server(backend: Backend) -> AsyncIterator[FaultyServer]:
    """Run a server in front of a backend, on a free port, in this event loop."""
    server = FaultyServer(backend)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
