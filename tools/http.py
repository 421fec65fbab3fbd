"""HTTP clients for model servers and embeddings endpoints, with replies of bounded size.

Replies are requested without compression, and compressed ones are refused, so that the limit holds for decoded bytes.
"""

import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import httpx2
from pydantic import SecretStr

MAX_REPLY_BYTES = 32 << 20
"""Decoded bytes of one reply: 128 vectors of 4,096 numbers, or 4,000 tokens with 20 alternatives each, take less."""

_PAUSES, _LONGEST_PAUSE = (0.5, 1.0, 2.0), 60.0
"""Seconds before each retry by `post`, and at most if the server names them."""
_SECONDS = re.compile(r"\d+(\.\d+)?")

_OPTIONS: dict[str, Any] = {
    "headers": {"Accept-Encoding": "identity"},
    "follow_redirects": True,
    "limits": httpx2.Limits(max_keepalive_connections=100),  # SLEUTH_CONCURRENCY limits the others
}


class UnusableReply(httpx2.RequestError):
    """A reply with status 200 that cannot be used; the request is retried, as after a broken connection."""


def bounded_client(options: dict[str, Any], *, key: SecretStr | None = None) -> httpx2.Client:
    """Return a blocking client with `client_options` that fails with UnusableReply once a reply exceeds the limit.

    `key`: a bearer token for the server.
    """
    client = httpx2.Client(event_hooks={"response": [_bound]}, **_OPTIONS, **options)
    if key:
        client.headers["Authorization"] = f"Bearer {key.get_secret_value()}"
    return client


def post(client: httpx2.Client, url: str, body: dict[str, Any]) -> httpx2.Response:
    """Return the response to a body of JSON; retry after a broken connection, 408, 409, 429 or 5xx. Blocks.

    Waits Retry-After seconds if given. Raises httpx2.HTTPError after the last attempt.
    """
    for pause in _PAUSES:
        after = ""
        with suppress(httpx2.RequestError):
            response = client.post(url, json=body)
            if response.status_code < 500 and response.status_code not in (408, 409, 429):
                return response.raise_for_status()
            after = response.headers.get("Retry-After", "")
        time.sleep(min(float(after), _LONGEST_PAUSE) if _SECONDS.fullmatch(after) else pause)
    return client.post(url, json=body).raise_for_status()


def bounded_async_client(options: dict[str, Any]) -> httpx2.AsyncClient:
    """Return a client with `client_options` that fails with UnusableReply once a reply exceeds the limit.

    It reads certificates: call this in a thread.
    """
    return httpx2.AsyncClient(event_hooks={"response": [_bound_async]}, **_OPTIONS, **options)


class _BoundedStream(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body of a reply, up to the limit."""

    def __init__(self, response: httpx2.Response) -> None:
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            raise UnusableReply(f"its reply is compressed ({encoding}) although the request refuses that")
        self._stream = response.stream
        self._left = MAX_REPLY_BYTES

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self._stream, httpx2.SyncByteStream)
        for piece in self._stream:
            yield self._counted(piece)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        async for piece in self._stream:
            yield self._counted(piece)

    def _counted(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        if self._left < 0:
            raise UnusableReply(f"its reply is larger than {MAX_REPLY_BYTES >> 20} MiB")
        return piece

    def close(self) -> None:
        assert isinstance(self._stream, httpx2.SyncByteStream)
        self._stream.close()

    async def aclose(self) -> None:
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        await self._stream.aclose()


def _bound(response: httpx2.Response) -> None:
    response.stream = _BoundedStream(response)
    if response.is_error:
        response.read()


async def _bound_async(response: httpx2.Response) -> None:
    response.stream = _BoundedStream(response)
    if response.is_error:
        await response.aread()
