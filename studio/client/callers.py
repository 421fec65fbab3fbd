"""Calls of coroutines in the event loop of their `Opener`, from any thread and event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sleuth.studio.client.opening import Opener
from sleuth.tools.errors import UsageError

T = TypeVar("T")


async def call_in(opener: Opener, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Call a function in its event loop, from this one or another one; raise UsageError in a forked process."""
    opener.check()
    if opener.loop is asyncio.get_running_loop():
        return await function()
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(function(), opener.loop))


def call_blocking(opener: Opener, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Call a function from synchronous code, and wait for its result.

    Raises:
        UsageError: it was called in the thread of its event loop, which would wait forever, or in a forked process.
    """
    opener.check()
    try:
        is_same = asyncio.get_running_loop() is opener.loop
    except RuntimeError:
        is_same = False
    if is_same:
        raise UsageError("It was opened in this event loop, which a synchronous call would block: use `ainvoke`.")
    return asyncio.run_coroutine_threadsafe(function(), opener.loop).result()
