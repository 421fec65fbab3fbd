"""Model calls in flight: fewer after time-outs of a slow server, more while it keeps up."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio import CapacityLimiter

from sleuth.tools.errors import ModelTimeout

T = TypeVar("T")

_log = logging.getLogger(__name__)


class CallSlots:
    """Slots for calls, at most `most` of them at a time.

    A server that works on several calls needs longer for each of them. So a call that times out next to others is
    repeated with half as many in flight, and only one that times out alone fails. Each reply within half of the
    time-out raises the number again by one.

    Usage:

        slots = CallSlots(8, seconds=120)
        reply = await slots.run(lambda: send(request))
    """

    def __init__(self, most: int, *, seconds: float) -> None:
        """`seconds` is the time-out of a call, which the call itself enforces."""
        self._most = most
        self._seconds = seconds
        self._limiter = CapacityLimiter(most)

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call in a free slot, and repeat it after a time-out next to other calls.

        Raises:
            ModelTimeout: the call timed out alone.
        """
        while True:
            async with self._limiter:
                begun, busiest = time.monotonic(), self._limiter.borrowed_tokens
                try:
                    result = await call()
                except ModelTimeout:
                    busiest = max(busiest, self._limiter.borrowed_tokens)
                    if busiest == 1:
                        raise
                    self._limiter.total_tokens = min(self._limiter.total_tokens, busiest // 2)
                    _log.warning(
                        "The model server is too slow for SLEUTH_CONCURRENCY=%d: calls that timed out are repeated, at "
                        "most %d at a time.",
                        self._most,
                        self._limiter.total_tokens,
                    )
                    continue
                if time.monotonic() - begun < self._seconds / 2:
                    self._limiter.total_tokens = min(self._limiter.total_tokens + 1, self._most)
                return result
