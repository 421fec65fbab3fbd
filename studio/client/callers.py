"""Calls of asynchronous functions from any thread and event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from anyio.from_thread import start_blocking_portal

from sleuth.tools.errors import UsageError

T = TypeVar("T")


class Caller(Protocol):
    """Calls an asynchronous function with one argument."""

    async def call(self, function: Callable[[str], Coroutine[Any, Any, T]], argument: str) -> T:
        """Call the function from an event loop."""
        ...

    def call_blocking(self, function: Callable[[str], Coroutine[Any, Any, T]], argument: str) -> T:
        """Call the function from synchronous code, and wait for its result."""
        ...


class AnyLoop:
    """A caller of functions that open and close their connections themselves."""

    async def call(self, function: Callable[[str], Coroutine[Any, Any, T]], argument: str) -> T:
        """Call the function in the present event loop."""
        return await function(argument)

    def call_blocking(self, function: Callable[[str], Coroutine[Any, Any, T]], argument: str) -> T:
        """Call the function in an event loop of its own."""
        return run_sync(function, argument)


class OneLoop:
    """A caller of functions whose connections belong to one event loop, which runs while they are called."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the event loop."""
        self._loop = loop

    async def call(self, function: Callable[[str], Coroutine[Any, Any, T]], argument: str) -> T:
        """Call the function in its event loop, from this one or another one."""
        if asyncio.get_running_loop() is self._loop:
            return await function(argument)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(function(argument), self._loop))

    def call_blocking(self, function: Callable[[str], Coroutine[Any, Any, T]], argument: str) -> T:
        """Call the function in its event loop; raise UsageError in that loop's thread, which would wait forever."""
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
