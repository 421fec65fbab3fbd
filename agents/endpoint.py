"""The few questions about a model server itself: which models, which version, how many tokens, what it can do."""

from dataclasses import dataclass
from typing import Any, Self

import httpx

from sleuth.agents import faults
from sleuth.agents.streams import STREAMED, gather, is_stream
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

CONTEXT_WINDOW = 8192
"""Tokens, where the server does not say."""

_PROBE = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 24}

_REFUSALS = (400, 404, 405, 422, 501)
"""Statuses of what a server does not have or cannot do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A model or adapter that the server lists, and the tokens that its prompt and reply may have together."""

    name: str
    context_window: int


class Endpoint:
    """One OpenAI-compatible server."""

    def __init__(self, settings: Settings) -> None:
        self.url = settings.model_url.rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise UsageError(f"SLEUTH_MODEL_URL is {self.url!r}: it must begin with http:// or https://.")
        self.timeout = settings.timeout
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
        return await self._json("POST", f"{self.url}/chat/completions", {"model": model, **_PROBE, **options})

    async def stream(self, model: str, **options: object) -> dict[str, Any] | None:
        """The same read as a stream; None where the server refuses it, sends something else, or less than a reply."""
        body = {"model": model, **_PROBE, **STREAMED, **options}
        try:
            async with self._http.stream("POST", f"{self.url}/chat/completions", json=body) as response:
                if response.status_code in _REFUSALS or (response.is_success and not is_stream(response.headers)):
                    return None
                if not response.is_success:
                    await response.aread()  # for the error's words
                    response.raise_for_status()
                status, whole = await gather(response.aiter_bytes(), lambda _: None)
        except faults.Malformed:
            return None
        except httpx.HTTPError as error:
            raise faults.from_http(error, url=self.url, seconds=self.timeout) from error
        return whole if status == 200 else None

    @property
    def _root(self) -> str:
        return self.url.removesuffix("/v1")

    async def _json(self, method: str, url: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """The JSON object that a URL gives; None for one that is not there or refuses what was asked."""
        try:
            response = await self._http.request(method, url, json=body)
            if response.status_code in _REFUSALS:
                return None
            response.raise_for_status()
        except httpx.HTTPError as error:
            raise faults.from_http(error, url=self.url, seconds=self.timeout) from error
        try:
            value = response.json()
        except ValueError:
            return None
        return value if isinstance(value, dict) else None
