"""Retries of operations that fail for a while."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

T = TypeVar("T")


async def retry(
    attempt: Callable[[], Awaitable[T]],
    is_temporary: Callable[[Exception], bool],
    *,
    pause: float,
    max_wait: float = math.inf,
    on_wait: Callable[[Exception], None] = lambda _: None,
) -> T:
    """Return the result of `attempt`, repeated every `pause` seconds while it fails with temporary errors.

    Args:
        attempt: the operation.
        is_temporary: whether an error may pass; any other one is raised immediately.
        pause: seconds between two attempts.
        max_wait: the most seconds; the last error is raised after them.
        on_wait: is called once, with the first error.
    """
    deadline, is_waiting = monotonic() + max_wait, False
    while True:
        try:
            return await attempt()
        except Exception as error:
            if not is_temporary(error) or monotonic() >= deadline:
                raise
            if not is_waiting:
                on_wait(error)
            is_waiting = True
        await asyncio.sleep(min(pause, max(0.0, deadline - monotonic())))
