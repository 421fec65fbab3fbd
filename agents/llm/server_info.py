"""HTTP access to an OpenAI-compatible server: completions, models, version and token counts.

Requests go through the OpenAI SDK, which retries them. Unusable and broken replies are retried here, within the same
number of retries.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

import httpx2
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI, AsyncStream

from sleuth.agents.llm import errors
from sleuth.agents.llm.completions import MAX_TOKENS, STREAMED, Choice, assemble_completion, parse_choice
from sleuth.agents.model import Listener, Message
from sleuth.tools.errors import UsageError
from sleuth.tools.http import bounded_async_client
from sleuth.tools.settings import Settings, client_options

RETRIES = 3
"""Retries of broken connections, unusable replies, 408, 409, 429 and 5xx; the SDK obeys Retry-After."""

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
    """A model or adapter that the server lists.

    `context_window` is the tokens of prompt and reply together; None if the server does not list it.
    """

    name: str
    context_window: int | None


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
            http_client=bounded_async_client(client_options(self.url, settings.proxy)),
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
        async with errors.as_model_errors(self.url, seconds=self.timeout):
            await self._reach()
        body = await self._json(f"{self.url}/models")
        if body is None or not isinstance(body.get("data"), list):
            raise UsageError(f"There is no OpenAI-compatible server at {self.url}: does SLEUTH_MODEL_URL lack its /v1?")
        entries = [entry for entry in body["data"] if isinstance(entry, dict) and "id" in entry]
        return [
            ServedModel(name=str(entry["id"]), context_window=_window(entry.get("max_model_len"))) for entry in entries
        ]

    async def version(self) -> str:
        """Return the server's version if it reports one (vLLM does), otherwise an empty text."""
        return str((await self.about("/version")).get("version", ""))

    async def about(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON object at a path outside the OpenAI API; empty if there is none. POST if there is a body."""
        return await self._json(f"{self._root}{path}", body) or {}

    async def count_tokens(self, model: str, messages: Sequence[Message]) -> int | None:
        """Return the tokens of a prompt with the chat template (vLLM's /tokenize); None if unsupported."""
        count = (await self.about("/tokenize", {"model": model, "messages": messages})).get("count")
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
            try:
                completion: dict[str, Any] = await self._completion(response, listener)
                choice = parse_choice(completion)
                if listener and choice.is_reasoned:
                    listener.delta(choice.text)
            except BaseException:
                if listener:
                    listener.reset()
                raise
            return completion

        return await self._ask(f"{self.url}/chat/completions", read, body=body, headers=headers)

    async def probe(self, model: str, **options: object) -> Choice:
        """Return a very short completion with these options; an empty one if the server refuses them."""
        body = await self._unless_refused(self.complete({"model": model, **_PROBE, **options}))
        return parse_choice(body or {"choices": [{"message": {}}]})

    async def probe_stream(self, model: str, **options: object) -> Choice | None:
        """Return a very short streamed completion; None if the server refuses to stream, or sends no usage."""

        async def read(response: httpx2.Response) -> Choice | None:
            if _is_stream(response):
                completion = await self._completion(response, None)
                return parse_choice(completion) if completion["usage"] else None
            content = await response.aread()
            if not content.startswith(b"data:"):  # a relay may change the content type of a stream
                parse_choice(await _decoded(content))
            return None

        body = {"model": model, **_PROBE, **STREAMED, **options}
        return await self._unless_refused(self._ask(f"{self.url}/chat/completions", read, body=body))

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
        return await self._unless_refused(self._ask(url, _object, body=body))

    async def _unless_refused(self, request: Awaitable[T]) -> T | None:
        """Return the result of a request about the server, None if the server refuses it; raise ModelErrors."""
        async with errors.as_model_errors(self.url, seconds=self.timeout):
            try:
                return await request
            except APIStatusError as error:
                if error.status_code not in _REFUSALS:
                    raise
        return None

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
        """Return the content of a response, with retries; POST if there is a body to send."""
        left = RETRIES
        while True:
            unread: Any = {
                "cast_to": httpx2.Response,
                "options": {"headers": dict(headers or {}), "max_retries": left},
                "stream": True,
                "stream_cls": AsyncStream[Any],
            }
            sent = self._sdk.get(url, **unread) if body is None else self._sdk.post(url, body=body, **unread)
            response = cast(httpx2.Response, await sent)
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


def _is_passing(error: Exception) -> bool:
    """Return whether to retry after a failure while a reply was read."""
    if isinstance(error, errors.BrokenStream):
        return error.status >= 500 or error.status in (408, 409, 429)
    return not isinstance(error, APITimeoutError | httpx2.TimeoutException)


def _is_stream(response: httpx2.Response) -> bool:
    """Return whether a response is a stream; a server may answer as a whole although a stream was requested."""
    return bool(response.headers.get("content-type", "").startswith("text/event-stream"))


def _window(length: object) -> int | None:
    """Return a model's context window as the server lists it, if it is valid."""
    return length if type(length) is int and 0 < length <= MAX_TOKENS else None


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
