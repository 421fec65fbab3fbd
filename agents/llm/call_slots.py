"""Model calls in flight: fewer after time-outs of a slow server, more while it keeps up."""

import logging
import time

from anyio import CapacityLimiter

from sleuth.tools.errors import ModelTimeout

_log = logging.getLogger(__name__)


class CallSlots:
    """Slots for calls, at most `most` of them at a time.

    A server that works on several calls needs longer for each of them. So a call that times out next to others is
    repeated with half as many in flight, and only one that times out alone fails. Each reply within half of the
    time-out raises the number again by one.

    Usage:

        slots = CallSlots(8, seconds=120)
        while True:
            async with slots.take():
                return await send(request)
    """

    def __init__(self, most: int, *, seconds: float) -> None:
        """`seconds` is the time-out of a call, which the call itself enforces."""
        self.most = most
        self.seconds = seconds
        self.limiter = CapacityLimiter(most)

    def take(self) -> "_Slot":
        """Return a slot for one call; after a time-out next to other calls its block ends without an error."""
        return _Slot(self)


class _Slot:
    def __init__(self, slots: CallSlots) -> None:
        self._slots = slots

    async def __aenter__(self) -> None:
        limiter = self._slots.limiter
        await limiter.acquire()
        self._begun, self._busiest = time.monotonic(), limiter.borrowed_tokens

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        slots, limiter = self._slots, self._slots.limiter
        busiest = max(self._busiest, limiter.borrowed_tokens)
        is_repeated = isinstance(error, ModelTimeout) and busiest > 1
        if is_repeated:
            limiter.total_tokens = min(limiter.total_tokens, busiest // 2)
            _log.warning(
                "The model server is too slow for SLEUTH_CONCURRENCY=%d: calls that timed out are repeated, at most "
                "%d at a time.",
                slots.most,
                limiter.total_tokens,
            )
        elif error is None and time.monotonic() - self._begun < slots.seconds / 2:
            limiter.total_tokens = min(limiter.total_tokens + 1, slots.most)
        limiter.release()
        return is_repeated
