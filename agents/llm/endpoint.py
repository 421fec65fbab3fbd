"""HTTP access to an OpenAI-compatible server: completions, models, version and token counts.

Requests go through the OpenAI SDK without its retries: a reply that is unusable or breaks off is retried, too.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, AsyncStream

from sleuth.agents.llm import errors
from sleuth.agents.llm.completions import Completion, read_stream, token_count
from sleuth.agents.model import Listener, Message
from sleuth.tools.errors import ModelError, UsageError
from sleuth.tools.http import bounded_async_client
from sleuth.tools.settings import Settings, client_options

T = TypeVar("T")

_SECONDS = re.compile(r"\d+(\.\d+)?")

RETRIES = 3
"""Retries of broken connections, unusable replies, 408, 409, 429 and 5xx, after the seconds of Retry-After if given."""

_PROBE = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 24}

_REFUSALS = (400, 404, 405, 422, 501)
"""Statuses of missing or unsupported features."""

_PAUSE = 0.5
"""Seconds before the first retry; doubled each time."""


class Endpoint:
    """One OpenAI-compatible server.

    Usage:

        async with await asyncio.to_thread(Endpoint, Settings(model_url="http://127.0.0.1:8000/v1")) as endpoint:
            models = await endpoint.models()
            completion = await endpoint.complete({"model": next(iter(models)), "messages": messages})
    """

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
            max_retries=0,
            http_client=bounded_async_client(client_options(self.url, settings.proxy)),
        )

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        await self._sdk.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Close the connection pool."""
        await self._sdk.close()

    async def models(self) -> dict[str, int]:
        """Return the models and adapters that the server lists, each with its context window; 0 if it lists none.

        Raises:
            UsageError: it is a server of another kind.
            ModelError: it cannot be reached.
        """
        entries = (await self._json(f"{self.url}/models", needs_server=True)).get("data")
        if not isinstance(entries, list):
            raise UsageError(f"There is no OpenAI-compatible server at {self.url}: does SLEUTH_MODEL_URL lack its /v1?")
        named = [entry for entry in entries if isinstance(entry, dict) and "id" in entry]
        return {str(entry["id"]): token_count(entry.get("max_model_len")) for entry in named}

    async def version(self) -> str:
        """Return the server's version if it reports one (vLLM does), otherwise an empty text."""
        return str((await self.about("/version")).get("version", ""))

    async def about(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON object at a path outside the OpenAI API; empty if there is none. POST if there is a body."""
        return await self._json(f"{self.url.removesuffix('/v1')}{path}", body)

    async def count_tokens(self, model: str, messages: Sequence[Message]) -> int | None:
        """Return the tokens of a prompt with the chat template (vLLM's /tokenize); None if unsupported."""
        count = (await self.about("/tokenize", {"model": model, "messages": messages})).get("count")
        return count if type(count) is int and count >= 0 else None

    async def complete(
        self, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, listener: Listener | None = None
    ) -> Completion:
        """Return a completion within the time-out, which includes all retries.

        Args:
            body: the request.
            headers: additional headers.
            listener: receives a streamed reply; it is reset if the reply breaks off.

        Raises:
            ModelError: after all retries.
        """
        # The SDK returns a response with an unread body only if a stream is asked for.
        unread: Any = {
            "cast_to": httpx2.Response,
            "options": {"headers": dict(headers or {})},
            "stream": True,
            "stream_cls": AsyncStream[Any],
        }

        async def attempt() -> Completion:
            response = cast(httpx2.Response, await self._sdk.post("/chat/completions", body=body, **unread))
            try:
                return await self._read(response, listener)
            finally:
                await response.aclose()

        return await self._retried(attempt)

    async def probe(self, model: str, **options: object) -> Completion:
        """Return a very short completion with these options; an empty one if the server refuses them."""
        try:
            return await self.complete({"model": model, **_PROBE, **options})
        except ModelError as error:
            if isinstance(error.__cause__, APIStatusError) and error.__cause__.status_code in _REFUSALS:
                return Completion()
            raise

    async def _read(self, response: httpx2.Response, listener: Listener | None) -> Completion:
        """Return the completion in a response, whether streamed or not: servers may ignore `stream`."""
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        try:
            # A relay may change the content type of a stream.
            if not is_stream and not (content := await response.aread()).startswith(b"data:"):
                completion = Completion()
                completion.add(await _decoded(content))
                completion.check()
            else:
                async with AsyncStream(cast_to=object, response=response, client=self._sdk) as stream:
                    completion = await read_stream(aiter(stream), listener.delta if listener else lambda _: None)
            if listener and completion.is_reasoned:
                listener.delta(completion.text)
        except BaseException:
            if listener:
                listener.reset()
            raise
        completion.is_streamed = is_stream
        return completion

    async def _json(
        self, url: str, body: Mapping[str, Any] | None = None, *, needs_server: bool = False
    ) -> dict[str, Any]:
        """Return the JSON object at a URL; empty if it does not exist, refuses the request, or is no JSON.

        With `needs_server`, it is not retried if no server listens.
        """

        async def attempt() -> Any:  # noqa: ANN401 - JSON
            try:
                if body is None:
                    response = await self._sdk.get(url, cast_to=httpx2.Response)
                else:
                    response = await self._sdk.post(url, cast_to=httpx2.Response, body=body)
                return await _decoded(response.content)
            except APIStatusError as error:
                if error.status_code not in _REFUSALS:
                    raise
            except errors.Malformed:
                if "json" in response.headers.get("content-type", ""):
                    raise
            return None  # perhaps another kind of server

        value = await self._retried(attempt, needs_server=needs_server)
        return value if isinstance(value, dict) else {}

    async def _retried(self, attempt: Callable[[], Awaitable[T]], *, needs_server: bool = False) -> T:
        retries = 0
        async with errors.as_model_errors(self.url, seconds=self.timeout):
            while True:
                try:
                    return await attempt()
                except errors.FAILURES as error:
                    if retries == RETRIES or not _is_passing(error):
                        raise
                    if needs_server and isinstance(error.__cause__, httpx2.ConnectError):
                        raise
                    after = error.response.headers.get("retry-after", "") if isinstance(error, APIStatusError) else ""
                await asyncio.sleep(float(after) if _SECONDS.fullmatch(after) else _PAUSE * 2**retries)
                retries += 1


def _is_passing(error: Exception) -> bool:
    """Return whether to retry after a failure."""
    if isinstance(error, APIStatusError | errors.BrokenStream):
        status = error.status_code if isinstance(error, APIStatusError) else error.status
        return status >= 500 or status in (408, 409, 429)
    cause = error.__cause__ if isinstance(error, APIConnectionError) else error
    return isinstance(cause, httpx2.RequestError) and not isinstance(cause, httpx2.TimeoutException)


async def _decoded(content: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return await asyncio.to_thread(json.loads, content)
    except (ValueError, RecursionError) as error:
        raise errors.Malformed("its body is not JSON") from error
