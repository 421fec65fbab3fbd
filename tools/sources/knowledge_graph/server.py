"""The benchmark's mock server, or another that answers in the same way, over HTTP."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import httpx

from sleuth.tools.sources.knowledge_graph.functions import FUNCTIONS, Function
from sleuth.tools.sources.knowledge_graph.lookups import GraphUnavailable

MAX_BYTES = 5_000_000


class ServedGraph:
    """A knowledge graph behind a URL; made by `open`."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, *, seconds: float = 10.0) -> AsyncIterator[Self]:
        """Keeps connections as long as the block lasts."""
        async with httpx.AsyncClient(base_url=url, timeout=seconds, trust_env=False) as client:
            yield cls(client)

    @property
    def functions(self) -> Sequence[Function]:
        """All of the benchmark's."""
        return tuple(FUNCTIONS.values())

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """What the server says under `result`; raises GraphUnavailable for anything but that."""
        sent = {each.sent_as: arguments[each.name] for each in function.parameters if each.name in arguments}
        try:
            async with self._client.stream("POST", function.path, json=sent) as response:
                body = await self._body(response)
            answered = httpx.Response(response.status_code, content=body, request=response.request)
            result = answered.raise_for_status().json()["result"]
        except httpx.HTTPStatusError as error:
            raise GraphUnavailable(f"the server answers {error.response.status_code} to {function.path}") from error
        except httpx.HTTPError as error:
            raise GraphUnavailable(f"{self._client.base_url} does not answer: {type(error).__name__}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise GraphUnavailable(f"the server's answer to {function.path} has no result in JSON") from error
        return result

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_BYTES:
                raise GraphUnavailable(f"the server's answer is larger than {MAX_BYTES:,} bytes")
        return bytes(body)
