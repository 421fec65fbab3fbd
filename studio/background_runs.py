"""Runs of this process that continue when nobody follows them any more."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from sleuth.graphs.core.streaming import Event
from sleuth.tools.errors import SleuthError

Events = AsyncGenerator[Event]


@dataclass(eq=False)
class _Run:
    """A run and the events that it has yielded; None is the end."""

    events: list[Event | None] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def collect(self, events: Events) -> None:
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    self._add(event)
        finally:
            self._add(None)

    def _add(self, event: Event | None) -> None:
        self.events.append(event)
        self.news.set()
        self.news = asyncio.Event()  # who waits has the one before


class BackgroundRuns:
    """At most one run of each thread. What still runs when the process ends is interrupted, and can be resumed."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[_Run, asyncio.Task[None]]] = {}

    def is_running(self, thread: str) -> bool:
        """Return whether a thread's run has not ended."""
        return thread in self._runs

    async def follow(self, thread: str, start: Callable[[], Events]) -> Events:
        """Yield the events of a thread's run, which is started unless it is running.

        Closing the generator does not stop the run.

        Raises:
            SleuthError: the error that stopped the run.
        """
        if thread not in self._runs:
            run = _Run()
            task = asyncio.create_task(run.collect(start()))
            task.add_done_callback(lambda task: self._forget(thread, task))
            self._runs[thread] = run, task
        (run, task), at = self._runs[thread], 0
        while True:
            while at == len(run.events):
                await run.news.wait()
            if (event := run.events[at]) is None:
                break
            at += 1
            yield event
        await task

    def _forget(self, thread: str, task: asyncio.Task[None]) -> None:
        del self._runs[thread]
        if not task.cancelled() and not isinstance(task.exception(), SleuthError | None):
            task.get_loop().call_exception_handler({"message": f"Run {thread} failed", "exception": task.exception()})
