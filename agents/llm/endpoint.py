"""HTTP access to an OpenAI-compatible server: completions, models and token counts."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar

import httpx2

from sleuth.agents.llm.completions import Completion, token_count
from sleuth.agents.llm.errors import ServerError, as_model_error
from sleuth.agents.model import Listener, Message
from sleuth.tools.errors import ModelError, ModelTimeout, UsageError
from sleuth.tools.http import RETRIES, UnusableReply, bounded_async_client, is_temporary, retry_pause
from sleuth.tools.settings import Settings, client_options

T = TypeVar("T")

_PROBE = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 24}

_REFUSALS = (400, 404, 405, 422, 501)
"""Statuses of missing or unsupported features."""


LIST_SECONDS = 10.0
"""The most seconds to wait for the list of a server's models; a call may take SLEUTH_TIMEOUT."""


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
        self._http = bounded_async_client(options, key=settings.model_key)

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Close the connection pool."""
        await self._http.aclose()

    async def models(self) -> dict[str, int]:
        """Return the models of `find_models`; raise UsageError if the server has no list of them."""
        if (listed := await self.find_models()) is None:
            raise UsageError(f"There is no OpenAI-compatible server at {self.url}: does SLEUTH_MODEL_URL lack its /v1?")
        return listed

    async def find_models(self) -> dict[str, int] | None:
        """Return the models and adapters that the server lists, each with its context window; 0 if it lists none.

        Returns:
            None if the server has no list of models.

        Raises:
            ModelError: it cannot be reached, or does not list them within `LIST_SECONDS`.
        """
        seconds = min(LIST_SECONDS, self.timeout)
        try:
            async with asyncio.timeout(seconds):
                entries = (await self._json(f"{self.url}/models", needs_server=True)).get("data")
        except (TimeoutError, ModelTimeout) as error:
            raise ModelTimeout(
                f"The model server at {self.url} accepts connections, but has not listed its models within "
                f"{seconds:g} s: restart it, or choose another one with SLEUTH_MODEL_URL."
            ) from error
        if not isinstance(entries, list):
            return None
        named = [entry for entry in entries if isinstance(entry, dict) and "id" in entry]
        return {str(entry["id"]): token_count(entry.get("max_model_len")) for entry in named}

    async def about(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON object at a path outside the OpenAI API; empty if there is none. POST if there is a body."""
        return await self._json(f"{self.url.removesuffix('/v1')}{path}", body)

    async def count_tokens(self, model: str, messages: Sequence[Message]) -> int | None:
        """Return the tokens of a prompt with the chat template (vLLM's /tokenize); None if unsupported."""
        count = (await self.about("/tokenize", {"model": model, "messages": messages})).get("count")
        return count if type(count) is int and count >= 0 else None

    def complete(
        self, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, listener: Listener | None = None
    ) -> Awaitable[Completion]:
        """Return a completion within the time-out, which includes all retries.

        Args:
            body: the request.
            headers: additional headers.
            listener: receives a streamed reply; it is reset if the reply breaks off.

        Raises:
            ModelError: after all retries.
        """
        read = partial(read_completion, listener=listener)
        return self._request(f"{self.url}/chat/completions", read, body, headers=headers)

    async def probe(self, model: str, **options: object) -> Completion:
        """Return a very short completion with these options; an empty one if the server refuses them."""
        try:
            return await self.complete({"model": model, **_PROBE, **options})
        except ModelError as error:
            if not _is_unsupported(error):
                raise
            return Completion()

    async def _json(
        self, url: str, body: Mapping[str, Any] | None = None, *, needs_server: bool = False
    ) -> dict[str, Any]:
        """Return the JSON object at a URL; empty if it does not exist, refuses the request, or is no JSON.

        With `needs_server`, it is not retried if no server listens.
        """
        try:
            value = await self._request(url, _read_json, body, needs_server=needs_server)
        except ModelError as error:
            if not _is_unsupported(error):
                raise
            return {}
        return value if isinstance(value, dict) else {}

    async def _request(
        self,
        url: str,
        read: Callable[[httpx2.Response], Awaitable[T]],
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        needs_server: bool = False,
    ) -> T:
        """Return what is read from the response to a GET, or a POST if there is a body. Failures are retried."""
        method, retries = "GET" if body is None else "POST", 0
        try:
            async with asyncio.timeout(self.timeout):
                while True:
                    try:
                        async with self._http.stream(method, url, json=body, headers=headers) as response:
                            if response.is_error:
                                after = response.headers.get("retry-after", "")
                                raise ServerError(_json_or_text(response), response.status_code, retry_after=after)
                            return await read(response)
                    except (httpx2.RequestError, ServerError) as error:
                        pause = _pause_after(error, retries, needs_server=needs_server)
                        if pause >= self.timeout:
                            raise
                    await asyncio.sleep(pause)
                    retries += 1
        except (TimeoutError, httpx2.RequestError, ServerError) as error:
            raise as_model_error(error, self.url, seconds=self.timeout) from error


async def read_completion(response: httpx2.Response, listener: Listener | None = None) -> Completion:
    """Return the completion in a response, streamed or not: servers may ignore `stream`.

    Args:
        response: the response, which is not read yet.
        listener: receives each text; it is reset if the reply breaks off.

    Raises:
        UnusableReply: the body is invalid, or the stream ends before the completion.
        ServerError: the server reports an error.
    """
    completion = Completion(listener)
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    try:
        # A relay may change the content type of a stream.
        if not is_stream and not (content := await response.aread()).startswith(b"data:"):
            await asyncio.to_thread(completion.parse, content)
        else:
            response.headers["content-type"] = "text/event-stream"
            async for event in httpx2.EventSource(response, None):
                if event.data.startswith("[DONE]"):
                    break
                completion.parse(event.data)
        completion.end()
    except BaseException:
        if listener:
            listener.reset()
        raise
    return completion


def _pause_after(error: httpx2.RequestError | ServerError, retries: int, *, needs_server: bool) -> float:
    """Return the seconds after which a failed request is sent again; infinity if it is not."""
    is_down = needs_server and isinstance(error, httpx2.ConnectError)
    if retries == RETRIES or is_down or isinstance(error, httpx2.TimeoutException):
        return math.inf
    if not isinstance(error, ServerError):
        return retry_pause(retries, "")
    is_final = error.status == 501 or not is_temporary(error.status)
    return math.inf if is_final else retry_pause(retries, error.retry_after)


def _is_unsupported(error: ModelError) -> bool:
    """Return whether the server has refused a request that it does not support."""
    return isinstance(error.__cause__, ServerError) and error.__cause__.status in _REFUSALS


async def _read_json(response: httpx2.Response) -> object:
    """Return the value in a response, or text of another kind of server."""
    await response.aread()
    value = _json_or_text(response)
    if isinstance(value, str) and "json" in response.headers.get("content-type", ""):
        raise UnusableReply("its body is not JSON")
    return value


def _json_or_text(response: httpx2.Response) -> object:
    """Return the body; a server may quote the key of the request in its error, which becomes part of messages."""
    text, key = response.text, response.request.headers.get("authorization", "").removeprefix("Bearer ")
    if key and response.is_error:
        text = text.replace(key, "***")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
