"""A check that work takes time in proportion to its input, which a slow machine does not change."""

import time
from collections.abc import Callable

SMALL, LARGE = 2_000, 32_000
"""Characters of the two inputs: 16 times as many take 16 times as long, or 256 times in quadratic time."""


def takes_linear_time(work: Callable[[int], object]) -> bool:
    """Compare the processor time of `work` for a small and a large number of characters, three times if needed."""
    work(SMALL)  # imports and caches
    return any(_seconds(work, LARGE) < 64 * min(_seconds(work, SMALL) for _ in range(3)) for _ in range(3))


def _seconds(work: Callable[[int], object], size: int) -> float:
    began = time.thread_time()
    work(size)
    return time.thread_time() - began
