"""HTTP access to an OpenAI-compatible server: completions, models, version and token counts.

Requests go through the OpenAI SDK, which retries them. Unusable and broken replies are retried here, within the same
number of retries.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, AsyncStream

from sleuth.agents.llm import errors
from sleuth.agents.llm.completions import Completion, assemble_completion, parse_completion, token_count
from sleuth.agents.model import Listener, Message
from sleuth.tools.errors import ModelError, UsageError
from sleuth.tools.http import bounded_async_client
from sleuth.tools.retry import retry
from sleuth.tools.settings import Settings, client_options

RETRIES = 3
"""Retries of broken connections, unusable replies, 408, 409, 429 and 5xx; the SDK obeys Retry-After."""

_PROBE = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 24}

_REFUSALS = (400, 404, 405, 422, 501)
"""Statuses of missing or unsupported features."""

_PAUSE = 0.5
"""Seconds before an unusable reply is retried; doubled for each completion, as in the SDK."""

_LARGE = 100_000
"""Bytes of JSON that are decoded in a millisecond; more are decoded in a thread."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedModel:
    """A model or adapter that the server lists.

    `context_window` is the tokens of prompt and reply together; None if the server does not list it.
    """

    name: str
    context_window: int | None


class Endpoint:
    """One OpenAI-compatible server.

    Usage:

        async with await asyncio.to_thread(Endpoint, Settings(model_url="http://127.0.0.1:8000/v1")) as endpoint:
            models = await endpoint.models()
            completion = await endpoint.complete({"model": models[0].name, "messages": messages})
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
            try:
                await self._sdk.get("/models", cast_to=httpx2.Response, options={"max_retries": 0})
            except APIStatusError:
                pass
            except APIConnectionError as error:
                if isinstance(error.__cause__, httpx2.ConnectError):  # no server listens: without retries
                    raise
        entries = (await self._json(f"{self.url}/models")).get("data")
        if not isinstance(entries, list):
            raise UsageError(f"There is no OpenAI-compatible server at {self.url}: does SLEUTH_MODEL_URL lack its /v1?")
        return [
            ServedModel(name=str(entry["id"]), context_window=token_count(entry.get("max_model_len")) or None)
            for entry in entries
            if isinstance(entry, dict) and "id" in entry
        ]

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
        left = RETRIES
        async with errors.as_model_errors(self.url, seconds=self.timeout):
            while True:
                # The SDK returns a response with an unread body only if a stream is asked for. A header of the request
                # counts its retries.
                unread: Any = {
                    "cast_to": httpx2.Response,
                    "options": {"headers": dict(headers or {}), "max_retries": left},
                    "stream": True,
                    "stream_cls": AsyncStream[Any],
                }
                response = cast(httpx2.Response, await self._sdk.post("/chat/completions", body=body, **unread))
                left -= int(response.request.headers.get("x-stainless-retry-count", 0))
                try:
                    return await self._read(response, listener)
                except errors.FAILURES as error:
                    if left == 0 or not _is_passing(error):
                        raise
                finally:
                    await response.aclose()
                await asyncio.sleep(_PAUSE * 2 ** (RETRIES - left))
                left -= 1

    async def probe(self, model: str, **options: object) -> Completion:
        """Return a very short completion with these options; an empty one if the server refuses them."""
        try:
            return await self.complete({"model": model, **_PROBE, **options})
        except ModelError as error:
            if isinstance(error.__cause__, APIStatusError) and error.__cause__.status_code in _REFUSALS:
                return parse_completion({"choices": [{"message": {}}]})
            raise

    async def _read(self, response: httpx2.Response, listener: Listener | None) -> Completion:
        """Return the completion in a response, whether streamed or not: servers may ignore `stream`."""
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        try:
            # A relay may change the content type of a stream.
            if not is_stream and not (content := await response.aread()).startswith(b"data:"):
                completion = parse_completion(await _decoded(content))
            else:
                async with AsyncStream(cast_to=object, response=response, client=self._sdk) as stream:
                    on_text = listener.delta if listener else lambda _: None
                    completion = parse_completion(await assemble_completion(aiter(stream), on_text))
            if listener and completion.is_reasoned:
                listener.delta(completion.text)
        except BaseException:
            if listener:
                listener.reset()
            raise
        completion.is_streamed = is_stream
        return completion

    async def _json(self, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON object at a URL; empty if there is none. Broken JSON is retried."""
        async with errors.as_model_errors(self.url, seconds=self.timeout):
            value = await retry(
                lambda: self._value(url, body),
                lambda error: isinstance(error, errors.Malformed),
                pause=_PAUSE,
                max_wait=RETRIES * _PAUSE,
            )
        return value if isinstance(value, dict) else {}

    async def _value(self, url: str, body: Mapping[str, Any] | None) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON value at a URL; None if it does not exist, refuses the request, or is no JSON."""
        try:
            if body is None:
                response = await self._sdk.get(url, cast_to=httpx2.Response)
            else:
                response = await self._sdk.post(url, cast_to=httpx2.Response, body=body)
        except APIStatusError as error:
            if error.status_code not in _REFUSALS:
                raise
            return None
        try:
            return await _decoded(response.content)
        except errors.Malformed:
            if "json" in response.headers.get("content-type", ""):
                raise
            return None  # a page of another kind of server


def _is_passing(error: Exception) -> bool:
    """Return whether to retry after a failure while a reply was read."""
    if isinstance(error, errors.BrokenStream):
        return error.status >= 500 or error.status in (408, 409, 429)
    return not isinstance(error, APITimeoutError | httpx2.TimeoutException)


async def _decoded(content: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(content) if len(content) < _LARGE else await asyncio.to_thread(json.loads, content)
    except (ValueError, RecursionError) as error:
        raise errors.Malformed("its body is not JSON") from error
