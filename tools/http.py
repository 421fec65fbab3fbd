"""HTTP clients for model servers and embeddings endpoints, with replies of bounded size.

Replies are requested without compression, and compressed ones are refused, so that the limit holds for decoded bytes.
"""

import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import httpx2
from pydantic import SecretStr

Client = TypeVar("Client", httpx2.Client, httpx2.AsyncClient)

MAX_REPLY_BYTES = 32 << 20
"""Decoded bytes of one reply: 128 vectors of 4,096 numbers, or 4,000 tokens with 20 alternatives each, take less."""

RETRIES = 3
"""The most retries of a request."""
_LONGEST_PAUSE = 60.0
"""Seconds before a retry by `post`, at most, if the server names them."""
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
    return _with_key(httpx2.Client(event_hooks={"response": [_bound]}, **_OPTIONS, **options), key)


def post(client: httpx2.Client, url: str, body: dict[str, Any]) -> httpx2.Response:
    """Return the response to a body of JSON; retry after a broken connection, 408, 409, 429 or 5xx. Blocks.

    Waits for `retry_pause`, at most a minute. Raises httpx2.HTTPError after the last attempt.
    """
    for retries in range(RETRIES):
        after = ""
        with suppress(httpx2.RequestError):
            response = client.post(url, json=body)
            if not is_temporary(response.status_code):
                return response.raise_for_status()
            after = response.headers.get("Retry-After", "")
        time.sleep(min(retry_pause(retries, after), _LONGEST_PAUSE))
    return client.post(url, json=body).raise_for_status()


def is_temporary(status: int) -> bool:
    """Return whether a request with this status may succeed when it is sent again."""
    return status >= 500 or status in (408, 409, 429)


def retry_pause(retries: int, after: str) -> float:
    """Return the seconds to wait after this number of retries: those of Retry-After, or half a second, then doubled."""
    return float(after) if _SECONDS.fullmatch(after) else 0.5 * 2**retries


def bounded_async_client(options: dict[str, Any], *, key: SecretStr | None = None) -> httpx2.AsyncClient:
    """Return a client as `bounded_client` does. It reads certificates: call this in a thread."""
    return _with_key(httpx2.AsyncClient(event_hooks={"response": [_bound_async]}, **_OPTIONS, **options), key)


def _with_key(client: Client, key: SecretStr | None) -> Client:
    if key:
        client.headers["Authorization"] = f"Bearer {key.get_secret_value()}"
    return client


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
