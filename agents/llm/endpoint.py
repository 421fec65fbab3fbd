"""HTTP access to an OpenAI-compatible server: completions, models and token counts."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import httpx2

from sleuth.agents.llm.completions import Completion, read_completion, token_count
from sleuth.agents.llm.errors import ServerError, as_model_errors
from sleuth.agents.model import Listener, Message
from sleuth.tools.errors import ModelError, UsageError
from sleuth.tools.http import UnusableReply, bounded_async_client
from sleuth.tools.settings import Settings, client_options

T = TypeVar("T")

_SECONDS = re.compile(r"\d+(\.\d+)?")

RETRIES = 3
"""Maximum number of retries after a broken connection, an unusable reply, 408, 409, 429 or 5xx.

Waits Retry-After seconds if given.
"""

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
        options = client_options(self.url, settings.proxy) | {"timeout": settings.timeout}
        self._http = bounded_async_client(options)
        if settings.model_key:
            self._http.headers["Authorization"] = f"Bearer {settings.model_key.get_secret_value()}"

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Close the connection pool."""
        await self._http.aclose()

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

        async def attempt() -> Completion:
            async with self._response(f"{self.url}/chat/completions", body, headers) as response:
                try:
                    return await read_completion(response, listener.delta if listener else None)
                except BaseException:
                    if listener:
                        listener.reset()
                    raise

        return await self._retried(attempt)

    async def probe(self, model: str, **options: object) -> Completion:
        """Return a very short completion with these options; an empty one if the server refuses them."""
        try:
            return await self.complete({"model": model, **_PROBE, **options})
        except ModelError as error:
            if isinstance(error.__cause__, ServerError) and error.__cause__.status in _REFUSALS:
                return Completion()
            raise

    @asynccontextmanager
    async def _response(
        self, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Enter the response to a GET, or a POST if there is a body, before it is read.

        Raises:
            ServerError: it has an error status.
        """
        method = "GET" if body is None else "POST"
        async with self._http.stream(method, url, json=body, headers=headers) as response:
            if response.is_error:
                after = response.headers.get("retry-after", "")
                raise ServerError(_json_or_text(response), response.status_code, retry_after=after)
            yield response

    async def _json(
        self, url: str, body: Mapping[str, Any] | None = None, *, needs_server: bool = False
    ) -> dict[str, Any]:
        """Return the JSON object at a URL; empty if it does not exist, refuses the request, or is no JSON.

        With `needs_server`, it is not retried if no server listens.
        """

        async def attempt() -> object:
            try:
                async with self._response(url, body) as response:
                    await response.aread()
            except ServerError as error:
                if error.status not in _REFUSALS:
                    raise
                return None
            value = _json_or_text(response)
            if isinstance(value, str) and "json" in response.headers.get("content-type", ""):
                raise UnusableReply("its body is not JSON")
            return value  # perhaps text of another kind of server

        value = await self._retried(attempt, needs_server=needs_server)
        return value if isinstance(value, dict) else {}

    async def _retried(self, attempt: Callable[[], Awaitable[T]], *, needs_server: bool = False) -> T:
        retries = 0
        async with as_model_errors(self.url, seconds=self.timeout):
            while True:
                try:
                    return await attempt()
                except (httpx2.RequestError, ServerError) as error:
                    is_down = needs_server and isinstance(error, httpx2.ConnectError)
                    if retries == RETRIES or is_down or isinstance(error, httpx2.TimeoutException):
                        raise
                    after = ""
                    if isinstance(error, ServerError):
                        if error.status == 501 or (error.status < 500 and error.status not in (408, 409, 429)):
                            raise
                        after = error.retry_after
                    pause = float(after) if _SECONDS.fullmatch(after) else _PAUSE * 2**retries
                    if pause >= self.timeout:
                        raise
                await asyncio.sleep(pause)
                retries += 1


def _json_or_text(response: httpx2.Response) -> object:
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return response.text
