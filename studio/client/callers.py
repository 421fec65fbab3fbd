"""Who has opened a `Sleuth`: a process and its event loop, which other threads and loops call."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sleuth.tools.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Opener:
    """The event loop and the process that opened connections; of those that create it by default."""

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    process: int = field(default_factory=os.getpid)

    def is_forked(self) -> bool:
        """Return whether this process is a fork of the one that opened the connections."""
        return os.getpid() != self.process

    def check(self) -> None:
        """Raise UsageError in a forked process: it lacks the threads of the event loop and connections of its own."""
        if self.is_forked():
            raise UsageError(
                f"This Sleuth was opened in process {self.process}, and cannot be used in process {os.getpid()}, "
                "which was forked from it. Call `sleuth.open` in the new process."
            )


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
