"""HTTP access to an OpenAI-compatible server: completions, models, version and token counts.

Requests go through the OpenAI SDK, which retries them. Unusable and broken replies are retried here, within the same
number of retries.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

import httpx2
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI, AsyncStream

from sleuth.agents.llm import errors
from sleuth.agents.llm.completions import MAX_TOKENS, STREAMED, NoUsage, assemble_completion, parse_choice
from sleuth.agents.model import Listener
from sleuth.tools.errors import UsageError
from sleuth.tools.http import bounded_async_client
from sleuth.tools.settings import Settings

RETRIES = 3
"""Retries of broken connections, unusable replies, 408, 409, 429 and 5xx; the SDK obeys Retry-After."""

CONTEXT_WINDOW = 8192
"""Tokens, if the server does not report its context window."""

_PROBE = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 24}

_REFUSALS = (400, 404, 405, 422, 501)
"""Statuses of missing or unsupported features."""

_PAUSE = 0.5
"""Seconds before an unusable reply is retried; doubled each time, as in the SDK."""

_LARGE = 100_000
"""Bytes of JSON that are decoded in a millisecond; more are decoded in a thread."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedModel:
    """A model or adapter that the server lists; `context_window` is the tokens of prompt and reply together."""

    name: str
    context_window: int


class Endpoint:
    """One OpenAI-compatible server."""

    def __init__(self, settings: Settings) -> None:
        """Read certificates: create it in a thread."""
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

    async def models(self) -> list[ServedModel]:
        """Return the models that the server lists; raise ModelError if it cannot be reached."""

        async def ask() -> dict[str, Any] | None:
            await self._reach()
            return await self._ask(f"{self.url}/models", _object)

        body = await self._within_timeout(ask)
        if body is None or not isinstance(body.get("data"), list):
            raise UsageError(f"There is no OpenAI-compatible server at {self.url}: does SLEUTH_MODEL_URL lack its /v1?")
        entries = [entry for entry in body["data"] if isinstance(entry, dict) and "id" in entry]
        return [
            ServedModel(name=str(entry["id"]), context_window=_window(entry.get("max_model_len"))) for entry in entries
        ]

    async def version(self) -> str:
        """Return the server's version if it reports one (vLLM does), otherwise an empty text."""
        body = await self._json(f"{self._root}/version")
        return str((body or {}).get("version", ""))

    async def count_tokens(self, model: str, messages: list[dict[str, str]]) -> int | None:
        """Return the tokens of a prompt with the chat template (vLLM's /tokenize); None if unsupported."""
        body = await self._json(f"{self._root}/tokenize", {"model": model, "messages": messages})
        count = (body or {}).get("count")
        return count if type(count) is int and count >= 0 else None

    async def complete(
        self, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, listener: Listener | None = None
    ) -> dict[str, Any]:
        """Return a completion as the server sends it, whether streamed or not.

        Args:
            body: the request.
            headers: additional headers.
            listener: receives a streamed reply; it is reset if the reply breaks off.

        Raises:
            errors.FAILURES: after all retries.
        """

        async def read(response: httpx2.Response) -> dict[str, Any]:
            valid = False
            try:
                completion: dict[str, Any] = await self._completion(response, listener)
                valid = bool(parse_choice(completion))
            finally:
                if listener and not valid:
                    listener.reset()
            return completion

        return await self._ask(f"{self.url}/chat/completions", read, body=body, headers=headers)

    async def probe(self, model: str, **options: object) -> dict[str, Any] | None:
        """Return a very short completion with these options; None if the server refuses them."""

        async def ask() -> dict[str, Any] | None:
            return await self.complete({"model": model, **_PROBE, **options})

        return await self._within_timeout(ask)

    async def probe_stream(self, model: str, **options: object) -> dict[str, Any] | None:
        """Return a very short streamed completion; None if the server refuses to stream, or sends no usage."""

        async def read(response: httpx2.Response) -> dict[str, Any] | None:
            if _is_stream(response):
                return cast(dict[str, Any], await self._completion(response, None))
            content = await response.aread()
            if not content.startswith(b"data:"):  # a relay may change the content type of a stream
                parse_choice(await _decoded(content))
            return None

        async def ask() -> dict[str, Any] | None:
            body = {"model": model, **_PROBE, **STREAMED, **options}
            return await self._ask(f"{self.url}/chat/completions", read, body=body)

        try:
            return await self._within_timeout(ask)
        except NoUsage:
            return None

    @property
    def _root(self) -> str:
        return self.url.removesuffix("/v1")

    async def _completion(self, response: httpx2.Response, listener: Listener | None) -> Any:  # noqa: ANN401 - JSON
        """Return the body of a completion, streamed or not: servers may ignore `stream`."""
        if not _is_stream(response):
            return await _decoded(await response.aread())
        stream = AsyncStream(cast_to=object, response=response, client=self._sdk)
        try:
            return await assemble_completion(aiter(stream), listener.delta if listener else lambda _: None)
        except APIConnectionError:
            raise
        except APIError as error:
            raise errors.BrokenStream.of(error.body) from error
        finally:
            await stream.close()

    async def _json(self, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the JSON object at a URL; None if it does not exist or refuses the request."""

        async def ask() -> dict[str, Any] | None:
            return await self._ask(url, _object, body=body)

        return await self._within_timeout(ask)

    async def _within_timeout(self, ask: Callable[[], Awaitable[T | None]]) -> T | None:
        """Return the result of a request about the server within the time-out; None if the server refuses it."""
        try:
            async with asyncio.timeout(self.timeout):
                return await ask()
        except NoUsage:
            raise
        except TimeoutError as error:
            raise errors.too_slow(self.url, self.timeout) from error
        except errors.FAILURES as error:
            if isinstance(error, APIStatusError) and error.status_code in _REFUSALS:
                return None
            raise errors.from_client(error, url=self.url, seconds=self.timeout) from error

    async def _reach(self) -> None:
        """Raise without retries if no server listens."""
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
        """Return the content of a response, with retries."""
        left = RETRIES
        while True:
            response = await self._send(url, body, headers=dict(headers or {}), max_retries=left)
            left -= int(response.request.headers.get("x-stainless-retry-count", 0))
            try:
                return await read(response)
            except errors.FAILURES as error:
                if left == 0 or not _is_passing(error):
                    raise
            finally:
                await response.aclose()
            await asyncio.sleep(_PAUSE * 2 ** (RETRIES - left))
            left -= 1

    async def _send(self, url: str, body: Mapping[str, Any] | None, **options: Any) -> httpx2.Response:  # noqa: ANN401
        """Return a successful response with its body unread; POST if there is a body to send."""
        unread: Any = {"cast_to": httpx2.Response, "options": options, "stream": True, "stream_cls": AsyncStream[Any]}
        response = self._sdk.get(url, **unread) if body is None else self._sdk.post(url, body=body, **unread)
        return cast(httpx2.Response, await response)


def _is_passing(error: Exception) -> bool:
    """Return whether to retry after a failure while a reply was read."""
    if isinstance(error, errors.BrokenStream):
        return errors.is_passing(error.status)
    return not isinstance(error, APITimeoutError | httpx2.TimeoutException | NoUsage)


def _is_stream(response: httpx2.Response) -> bool:
    """Return whether a response is a stream; a server may answer as a whole although a stream was requested."""
    return bool(response.headers.get("content-type", "").startswith("text/event-stream"))


def _window(length: object) -> int:
    """Return a model's context window as the server lists it, if it is valid."""
    return length if type(length) is int and 0 < length <= MAX_TOKENS else CONTEXT_WINDOW


async def _decoded(content: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(content) if len(content) < _LARGE else await asyncio.to_thread(json.loads, content)
    except (ValueError, RecursionError) as error:
        raise errors.Malformed("its body is not JSON") from error


async def _object(response: httpx2.Response) -> dict[str, Any] | None:
    """Return the object in a response; None for a page of another kind of server; raise Malformed for broken JSON."""
    try:
        value = await _decoded(await response.aread())
    except errors.Malformed:
        if "json" in response.headers.get("content-type", ""):
            raise
        return None
    return value if isinstance(value, dict) else None
