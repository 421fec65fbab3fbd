"""Responses that last as long as a run: proxies do not close them, and closing them early can cancel the run."""

import asyncio
from collections.abc import AsyncIterator, Callable

KEEP_ALIVE = 15.0
"""Seconds without a chunk after which a filler keeps proxies from closing the connection."""


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
