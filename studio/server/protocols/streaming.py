"""Responses that last as long as a run: proxies do not close them, and closing them early can cancel the run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Any, Self

from starlette.responses import StreamingResponse

KEEP_ALIVE = 30.0
"""Seconds without a chunk after which a filler keeps proxies from closing the connection."""

_EVENT = {"type": "object", "properties": {name: {"type": "string"} for name in ("data", "event", "id")}}

DESCRIPTION: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"itemSchema": _EVENT}}}}
"""Server-sent events in the OpenAPI description."""

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""No proxy may store or buffer the response."""


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"

    @classmethod
    def of(
        cls,
        events: AsyncIterator[str],
        *,
        on_disconnect: Callable[[], None] = lambda: None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Return a stream of encoded events; see `with_keep_alive`."""
        return cls(with_keep_alive(events, on_disconnect=on_disconnect), headers={**HEADERS, **headers})


def encode_event(data: str, *, event: str = "", id: str | int = "") -> str:
    """Return a server-sent event; `data` is JSON on one line."""
    fields = {"event": event, "data": data, "id": id}
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value) + "\n"


async def with_keep_alive(
    chunks: AsyncIterator[str], *, on_disconnect: Callable[[], None], filler: str = ": keep-alive\n\n"
) -> AsyncIterator[str]:
    """Yield the chunks, and a filler during long pauses.

    Args:
        chunks: the body of the response.
        on_disconnect: is called when the client closes the connection before the end.
        filler: text that readers of the body ignore.
    """
    next_chunk, has_ended = asyncio.ensure_future(anext(chunks, None)), False
    try:
        while True:
            await asyncio.wait({next_chunk}, timeout=KEEP_ALIVE)
            if not next_chunk.done():
                yield filler
            elif (chunk := next_chunk.result()) is None:
                has_ended = True
                return
            else:
                yield chunk
                next_chunk = asyncio.ensure_future(anext(chunks, None))
    finally:
        next_chunk.cancel()
        if not has_ended:
            on_disconnect()
