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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from fault_injection import Asked, Fault, Weather
from model_server import chunks
from recording_proxy import Backend

CALL_HEADER = "x-sleuth-call"

_INSTEAD = frozenset({Fault.SILENT, Fault.CLOSED, Fault.NO_HTTP})
"""What is done instead of a reply."""
_STATUS = {Fault.BUSY_FOR: 429, Fault.BUSY: 429, Fault.FAILING: 500, Fault.UNAVAILABLE: 503}
_NONSENSE = [{"unexpected": [1, None]}, [[]], 17, {"answer": {"answer": []}}, {"steps": "none", "citations": {}}]


class Face:
    """Address for clients; `open` are the requests in progress."""

    def __init__(self, backend: Backend) -> None:
        self.open = 0
        self.weathers: dict[str, Weather] = {}
        self._backend = backend
        self._port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def url(self, run: str, weather: Weather) -> str:
        """The base URL, as in SLEUTH_MODEL_URL."""
        self.weathers[run] = weather
        return f"http://127.0.0.1:{self._port}/{run}/v1"

    async def start(self) -> None:
        """Listens, after a stop at the same port as before."""
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

    async def _answer(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer a request, with or without a fault; return whether the connection can be reused."""
        weather = self.weathers[asked.run]
        if asked.call:
            weather.calls.append(asked.call)
        dice = weather.dice(asked)
        fault = weather.draw(asked, dice)
        self.open += 1
        try:
            return await _Replying(asked, dice, reader, writer, weather).reply(self._backend, fault)
        finally:
            self.open -= 1


@dataclass
class _Replying:
    asked: Asked
    dice: Random
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    weather: Weather

    async def reply(self, backend: Backend, fault: Fault | None) -> bool:
        said = None if fault in _INSTEAD or fault in _STATUS else await self._said(backend)
        if fault:  # not where the client has left before
            self.weather.met[fault] += 1
        if said:
            return await self._tell(said.status, _spoilt(said.body, fault, self.dice), fault)
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

    async def _said(self, backend: Backend) -> Any:
        """Return the reply of the backend, unless the client disconnects before."""
        saying = asyncio.create_task(backend.say(self.asked.method, self.asked.path, self.asked.plain()))
        leaving = asyncio.create_task(_left(self.reader))
        await asyncio.wait([saying, leaving], return_when=asyncio.FIRST_COMPLETED)
        for each in (saying, leaving):
            each.cancel()
        await asyncio.wait([saying, leaving])
        if saying.cancelled():
            raise ConnectionResetError
        return saying.result()

    async def _refuse(self, status: int, headers: str) -> bool:
        body = json.dumps({"error": {"message": "the dice say no", "code": status}}).encode()
        await self._send(_head(status, "application/json", len(body), headers) + body)
        return True

    async def _tell(self, status: int, body: bytes, fault: Fault | None) -> bool:
        streamed = self.asked.streamed and status == 200 and fault not in (Fault.HALF_BODY, Fault.EMPTY, Fault.NULL)
        told = _events(json.loads(body), fault) if streamed else body
        if fault is Fault.HALF_BODY:
            told = told[: self.dice.randrange(1, len(told))]
        media_type = "text/event-stream" if streamed else "application/json"
        whole = _head(status, media_type, len(told)) + told
        if fault not in (Fault.RESET, Fault.SILENT_MIDWAY):
            await self._send(whole)
            return True
        await self._send(whole[: self.dice.randrange(1, len(whole))])
        if fault is Fault.SILENT_MIDWAY:
            return await self._wait()
        _reset(self.writer)
        return False

    async def _wait(self) -> bool:
        """Stall until the client has disconnected."""
        self.weather.silent += [self.asked.call] if self.asked.call else []
        began = time.monotonic()
        await _left(self.reader)
        self.weather.silences.append(time.monotonic() - began)
        return False

    async def _send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


def _spoilt(body: bytes, fault: Fault | None, dice: Random) -> bytes:
    """A completion with invalid content."""
    if fault is Fault.NULL:
        return b"{}"
    if fault not in (Fault.EMPTY, Fault.HALF_REPLY, Fault.WRONG_SCHEMA):
        return body
    said = json.loads(body)
    if fault is Fault.EMPTY:
        return json.dumps({**said, "choices": []}).encode()
    (choice,) = said["choices"]
    text = choice["message"]["content"]
    changed = json.dumps(dice.choice(_NONSENSE)) if fault is Fault.WRONG_SCHEMA else text[: len(text) // 2]
    finish = "stop" if fault is Fault.WRONG_SCHEMA else "length"
    message = {"role": "assistant", "content": changed}
    return json.dumps({**said, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode()


def _events(said: dict[str, Any], fault: Fault | None) -> bytes:
    """A completion as a stream of events."""
    parts = [json.dumps(chunk) for chunk in chunks(said)] + ["[DONE]"]
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


async def _request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    _, run, path = target.split("/", 2)
    return Asked(method, run, f"/{path}", headers.get(CALL_HEADER, ""), body)


async def _left(reader: asyncio.StreamReader) -> None:
    """Returns once the client has closed its side; it sends nothing more meanwhile."""
    with suppress(ConnectionError):
        await reader.read(1)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection as a server that died would."""
    found: socket.socket | None = writer.get_extra_info("socket")
    if found:
        with suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def facing(backend: Backend) -> AsyncIterator[Face]:
    """A face on a free port, in this event loop."""
    face = Face(backend)
    await face.start()
    try:
        yield face
    finally:
        await face.stop()
