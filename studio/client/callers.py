"""Calls of asynchronous functions from any thread and event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal

from sleuth.tools.errors import UsageError

T = TypeVar("T")


class Caller:
    """Calls asynchronous functions with one argument.

    Connections of the functions belong to the event loop `loop`, which runs while they are called; without one, the
    functions open and close their connections themselves.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Set the event loop."""
        self._loop = loop

    async def call(self, function: Callable[[str], Coroutine[Any, Any, T]], argument: str) -> T:
        """Call the function in its event loop, from this one or another one."""
        if self._loop in (None, asyncio.get_running_loop()):
            return await function(argument)
        assert self._loop
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(function(argument), self._loop))

    def call_blocking(self, function: Callable[[str], Coroutine[Any, Any, T]], argument: str) -> T:
        """Call the function from synchronous code, and wait for its result.

        Raises:
            UsageError: it was called in the thread of its event loop, which would wait forever.
        """
        if self._loop is None:
            return run_sync(function, argument)
        try:
            is_own = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_own = False
        if is_own:
            raise UsageError("It was opened in this event loop, which a synchronous call would block: use `ainvoke`.")
        return asyncio.run_coroutine_threadsafe(function(argument), self._loop).result()


def run_sync(function: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:  # noqa: ANN401 - the function's
    """Call a function in a thread with an event loop of its own: this works where a loop is running, too."""
    with start_blocking_portal() as portal:
        return portal.call(partial(function, *args, **options))
