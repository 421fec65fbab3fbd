"""The few questions about a model server itself: which models, which version, how many tokens, what it can do.

A passing fault is got over as in a chat call: else a run would end, or an ability be taken for missing, for its sake.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import httpx

from sleuth.agents import faults
from sleuth.agents.replies import check
from sleuth.agents.streams import STREAMED, NoUsage, gather, is_stream
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

CONTEXT_WINDOW = 8192
"""Tokens, where the server does not say."""

_PROBE = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 24}

_REFUSALS = (400, 404, 405, 422, 501)
"""Statuses of what a server does not have or cannot do."""

_PASSING = (408, 409, 429)
"""Statuses beside 5xx that may be another one soon."""

_PAUSES = (0.25, 0.5, 1.0)
"""Seconds before each further try."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A model or adapter that the server lists, and the tokens that its prompt and reply may have together."""

    name: str
    context_window: int


def _any(_response: httpx.Response) -> None:
    """Every response will do."""


class Endpoint:
    """One OpenAI-compatible server."""

    def __init__(self, settings: Settings) -> None:
        self.url = settings.model_url.rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise UsageError(f"SLEUTH_MODEL_URL is {self.url!r}: it must begin with http:// or https://.")
        self.timeout = settings.timeout
        self._reached = False
        key = settings.model_key
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        self._http = httpx.AsyncClient(headers=headers, timeout=settings.timeout)

    async def __aenter__(self) -> Self:
        """Opens the connection pool."""
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Closes the connection pool."""
        await self._http.aclose()

    async def models(self) -> list[Listed]:
        """What the server lists; raises ModelError where it cannot be asked."""
        body = await self._json("GET", f"{self.url}/models")
        if body is None or not isinstance(body.get("data"), list):
            raise UsageError(f"There is no OpenAI-compatible server at {self.url}: does SLEUTH_MODEL_URL lack its /v1?")
        entries = [entry for entry in body["data"] if isinstance(entry, dict) and "id" in entry]
        return [
            Listed(name=str(entry["id"]), context_window=int(entry.get("max_model_len") or CONTEXT_WINDOW))
            for entry in entries
        ]

    async def version(self) -> str:
        """The server's version where it tells it (vLLM does), else an empty text."""
        body = await self._json("GET", f"{self._root}/version")
        return str((body or {}).get("version", ""))

    async def count_tokens(self, model: str, messages: list[dict[str, str]]) -> int | None:
        """Tokens of a prompt with the chat template (vLLM's /tokenize); None where the server cannot say."""
        body = await self._json("POST", f"{self._root}/tokenize", {"model": model, "messages": messages})
        count = (body or {}).get("count")
        return count if isinstance(count, int) else None

    async def chat(self, model: str, **options: object) -> dict[str, Any] | None:
        """A very short completion with these options; None where the server refuses them."""
        body = {"model": model, **_PROBE, **options}
        return await self._json("POST", f"{self.url}/chat/completions", body, check=check)

    async def stream(self, model: str, **options: object) -> dict[str, Any] | None:
        """The same read as a stream; None where the server refuses it, answers in one piece, or tells no usage."""
        body = {"model": model, **_PROBE, **STREAMED, **options}

        async def read() -> dict[str, Any] | None:
            async with self._http.stream("POST", f"{self.url}/chat/completions", json=body) as response:
                if response.status_code in _REFUSALS:
                    return None
                if not is_stream(response.headers):
                    await response.aread()
                    response.raise_for_status()
                    if not response.content.startswith(b"data:"):  # a stream whose label a relay has changed is no use
                        check(response)
                    return None
                status, whole = await gather(response.aiter_bytes(), lambda _: None)
            if status != 200:
                raise faults.Malformed(f"its stream ends with status {status}")
            return whole

        try:
            return await self._patiently(read)
        except NoUsage:
            return None

    @property
    def _root(self) -> str:
        return self.url.removesuffix("/v1")

    async def _json(
        self,
        method: str,
        url: str,
        body: dict[str, Any] | None = None,
        *,
        check: Callable[[httpx.Response], None] = _any,
    ) -> dict[str, Any] | None:
        """The JSON object that a URL gives; None for one that is not there or refuses what was asked."""

        async def ask() -> dict[str, Any] | None:
            response = await self._http.request(method, url, json=body)
            if response.status_code in _REFUSALS:
                return None
            response.raise_for_status()
            check(response)
            return _object(response)

        return await self._patiently(ask)

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What is said at the end of a few tries, all of them within the time-out; raises ModelError."""
        try:
            async with asyncio.timeout(self.timeout):
                for pause in _PAUSES:
                    try:
                        return await self._once(ask)
                    except httpx.HTTPError as error:
                        if not self._passes(error):
                            raise
                    await asyncio.sleep(pause)
                return await self._once(ask)
        except NoUsage:
            raise
        except TimeoutError as error:
            raise faults.too_slow(self.url, self.timeout) from error
        except httpx.HTTPError as error:
            raise faults.from_http(error, url=self.url, seconds=self.timeout) from error

    async def _once(self, ask: Callable[[], Awaitable[T]]) -> T:
        said = await ask()
        self._reached = True
        return said

    def _passes(self, error: httpx.HTTPError) -> bool:
        """Whether asking again may help. Where nobody has ever listened, nobody is waited for."""
        if isinstance(error, httpx.HTTPStatusError):
            return error.response.status_code >= 500 or error.response.status_code in _PASSING
        if isinstance(error, httpx.ConnectError):
            return self._reached
        return not isinstance(error, httpx.TimeoutException | NoUsage)


def _object(response: httpx.Response) -> dict[str, Any] | None:
    """What a response holds; None for a page, which another kind of server sends. Raises Malformed for broken JSON."""
    try:
        value = response.json()
    except ValueError as error:
        if "json" in response.headers.get("content-type", ""):
            raise faults.Malformed("its body is not JSON") from error
        return None
    return value if isinstance(value, dict) else None
