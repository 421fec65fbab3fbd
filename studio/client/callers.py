"""Calls of coroutines from any thread and event loop.

Connections of a coroutine belong to the event loop `loop`, which runs while it is called; without one, the coroutine
opens and closes its connections itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal

from sleuth.tools.errors import UsageError

T = TypeVar("T")

Loop = asyncio.AbstractEventLoop | None


async def call_in(loop: Loop, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Call a function in its event loop, from this one or another one."""
    if loop is None or loop is asyncio.get_running_loop():
        return await function()
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(function(), loop))


def call_blocking(loop: Loop, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Call a function from synchronous code, and wait for its result.

    Raises:
        UsageError: it was called in the thread of its event loop, which would wait forever.
    """
    if loop is None:
        return run_sync(function)
    try:
        is_own = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_own = False
    if is_own:
        raise UsageError("It was opened in this event loop, which a synchronous call would block: use `ainvoke`.")
    return asyncio.run_coroutine_threadsafe(function(), loop).result()


def run_sync(function: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:  # noqa: ANN401 - the function's
    """Call a function in a thread with an event loop of its own: this works where a loop is running, too."""
    with start_blocking_portal() as portal:
        return portal.call(partial(function, *args, **options))
