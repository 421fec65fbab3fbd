"""Client of an OpenAI-compatible server: completions, and what the server can tell about itself.

Requests go through the OpenAI SDK, which retries them. Replies that cannot be used or that break off are retried here,
and count among the SDK's retries.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

import httpx2
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI, AsyncStream

from sleuth.agents.llm import errors as faults
from sleuth.agents.llm.completions import MAX_TOKENS, STREAMED, NoUsage, assemble, choice_of
from sleuth.agents.model import Listener
from sleuth.tools.errors import UsageError
from sleuth.tools.http import bounded_async_client
from sleuth.tools.settings import Settings

RETRIES = 3
"""For broken connections, unusable replies, 408, 409, 429 and 5xx; the SDK waits as long as Retry-After says."""

CONTEXT_WINDOW = 8192
"""Tokens, where the server does not say."""

_PROBE = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 24}

_REFUSALS = (400, 404, 405, 422, 501)
"""Statuses of what a server does not have or cannot do."""

_PAUSE = 0.5
"""Seconds before an unusable reply is asked for again; doubled each time, as in the SDK."""

_LARGE = 100_000
"""Bytes of JSON that are decoded in a millisecond; more are decoded in a thread."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A model or adapter that the server lists, and the tokens that its prompt and reply may have together."""

    name: str
    context_window: int


class Endpoint:
    """One OpenAI-compatible server."""

    def __init__(self, settings: Settings) -> None:
        """Read certificates: make it in a thread."""
        self.url = settings.model_url.rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise UsageError(f"SLEUTH_MODEL_URL is {self.url!r}: it must begin with http:// or https://.")
        self.timeout = settings.timeout
        key = settings.model_key
        self._sdk = AsyncOpenAI(
            base_url=self.url,
            api_key=key.get_secret_value() if key else "none",
            timeout=settings.timeout,
            max_retries=RETRIES,
            http_client=bounded_async_client(),
        )

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        await self._sdk.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Close the connection pool."""
        await self._sdk.close()

    async def models(self) -> list[Listed]:
        """What the server lists; raises ModelError where it cannot be asked."""

        async def ask() -> dict[str, Any] | None:
            await self._reach()
            return await self._ask(f"{self.url}/models", _object)

        body = await self._patiently(ask)
        if body is None or not isinstance(body.get("data"), list):
            raise UsageError(f"There is no OpenAI-compatible server at {self.url}: does SLEUTH_MODEL_URL lack its /v1?")
        entries = [entry for entry in body["data"] if isinstance(entry, dict) and "id" in entry]
        return [Listed(name=str(entry["id"]), context_window=_window(entry.get("max_model_len"))) for entry in entries]

    async def version(self) -> str:
        """The server's version where it tells it (vLLM does), else an empty text."""
        body = await self._json(f"{self._root}/version")
        return str((body or {}).get("version", ""))

    async def count_tokens(self, model: str, messages: list[dict[str, str]]) -> int | None:
        """Tokens of a prompt with the chat template (vLLM's /tokenize); None where the server cannot say."""
        body = await self._json(f"{self._root}/tokenize", {"model": model, "messages": messages})
        count = (body or {}).get("count")
        return count if type(count) is int and count >= 0 else None

    async def complete(
        self, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, listener: Listener | None = None
    ) -> dict[str, Any]:
        """Return a completion as the server sends it, also where it is streamed.

        Args:
            body: the request.
            headers: sent with it.
            listener: gets a streamed reply as it comes; it is reset where the reply breaks off.

        Raises:
            faults.FAILURES: after all retries.
        """

        async def read(response: httpx2.Response) -> dict[str, Any]:
            valid = False
            try:
                completion: dict[str, Any] = await self._completion(response, listener)
                valid = bool(choice_of(completion))
            finally:
                if listener and not valid:
                    listener.reset()
            return completion

        return await self._ask(f"{self.url}/chat/completions", read, body=body, headers=headers)

    async def probe(self, model: str, **options: object) -> dict[str, Any] | None:
        """Return a very short completion with these options; None where the server refuses them."""

        async def ask() -> dict[str, Any] | None:
            return await self.complete({"model": model, **_PROBE, **options})

        return await self._patiently(ask)

    async def probe_stream(self, model: str, **options: object) -> dict[str, Any] | None:
        """Return the same read as a stream; None where the server refuses it, answers in one piece, or has no usage."""

        async def read(response: httpx2.Response) -> dict[str, Any] | None:
            if _is_stream(response):
                return cast(dict[str, Any], await self._completion(response, None))
            content = await response.aread()
            if not content.startswith(b"data:"):  # a stream whose label a relay has changed is no use
                choice_of(await _decoded(content))
            return None

        async def ask() -> dict[str, Any] | None:
            body = {"model": model, **_PROBE, **STREAMED, **options}
            return await self._ask(f"{self.url}/chat/completions", read, body=body)

        try:
            return await self._patiently(ask)
        except NoUsage:
            return None

    @property
    def _root(self) -> str:
        return self.url.removesuffix("/v1")

    async def _completion(self, response: httpx2.Response, listener: Listener | None) -> Any:  # noqa: ANN401 - JSON
        """The body of a completion that comes whole or as a stream, whatever was asked for."""
        if not _is_stream(response):
            return await _decoded(await response.aread())
        stream = AsyncStream(cast_to=object, response=response, client=self._sdk)
        try:
            return await assemble(aiter(stream), listener.delta if listener else _unheard)
        except APIConnectionError:
            raise
        except APIError as error:
            raise faults.BrokenStream.of(error.body) from error
        finally:
            await stream.close()

    async def _json(self, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """The JSON object that a URL gives; None for one that is not there or refuses what was asked."""

        async def ask() -> dict[str, Any] | None:
            return await self._ask(url, _object, body=body)

        return await self._patiently(ask)

    async def _patiently(self, ask: Callable[[], Awaitable[T | None]]) -> T | None:
        """The answer to a question about the server, within the time-out; None where it refuses it."""
        try:
            async with asyncio.timeout(self.timeout):
                return await ask()
        except NoUsage:
            raise
        except TimeoutError as error:
            raise faults.too_slow(self.url, self.timeout) from error
        except faults.FAILURES as error:
            if isinstance(error, APIStatusError) and error.status_code in _REFUSALS:
                return None
            raise faults.from_client(error, url=self.url, seconds=self.timeout) from error

    async def _reach(self) -> None:
        """Fail without retries where no server listens."""
        try:
            await self._sdk.get("/models", cast_to=httpx2.Response, options={"max_retries": 0})
        except APIStatusError:
            return
        except APIConnectionError as error:
            if isinstance(error.__cause__, httpx2.ConnectError):
                raise

    async def _ask(
        self,
        url: str,
        read: Callable[[httpx2.Response], Awaitable[T]],
        *,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        """What is read in the response to a request, which is sent again as long as retries are left."""
        left = RETRIES
        while True:
            response = await self._send(url, body, headers=dict(headers or {}), max_retries=left)
            left -= int(response.request.headers.get("x-stainless-retry-count", 0))
            try:
                return await read(response)
            except faults.FAILURES as error:
                if left == 0 or not _is_passing(error):
                    raise
            finally:
                await response.aclose()
            await asyncio.sleep(_PAUSE * 2 ** (RETRIES - left))
            left -= 1

    async def _send(self, url: str, body: Mapping[str, Any] | None, **options: Any) -> httpx2.Response:  # noqa: ANN401
        """A successful response, its body unread; POST where there is a body to send."""
        unread: Any = {"cast_to": httpx2.Response, "options": options, "stream": True, "stream_cls": AsyncStream[Any]}
        response = self._sdk.get(url, **unread) if body is None else self._sdk.post(url, body=body, **unread)
        return cast(httpx2.Response, await response)


def _is_passing(error: Exception) -> bool:
    """Whether a reply that failed while it was read is worth another request."""
    if isinstance(error, faults.BrokenStream):
        return faults.is_passing(error.status)
    return not isinstance(error, APITimeoutError | httpx2.TimeoutException | NoUsage)


def _is_stream(response: httpx2.Response) -> bool:
    """Whether a response is one; a server may answer in one piece although it was asked."""
    return bool(response.headers.get("content-type", "").startswith("text/event-stream"))


def _unheard(_text: str) -> None:
    """For a reply that nobody follows."""


def _window(length: object) -> int:
    """A model's context window as the server lists it."""
    return length if type(length) is int and 0 < length <= MAX_TOKENS else CONTEXT_WINDOW


async def _decoded(content: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(content) if len(content) < _LARGE else await asyncio.to_thread(json.loads, content)
    except (ValueError, RecursionError) as error:
        raise faults.Malformed("its body is not JSON") from error


async def _object(response: httpx2.Response) -> dict[str, Any] | None:
    """What a response holds; None for a page, which another kind of server sends. Raises Malformed for broken JSON."""
    try:
        value = await _decoded(await response.aread())
    except faults.Malformed:
        if "json" in response.headers.get("content-type", ""):
            raise
        return None
    return value if isinstance(value, dict) else None
