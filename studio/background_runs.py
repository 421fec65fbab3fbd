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
    """A run, the events that it has yielded, and the queues of those who follow it; None ends a queue."""

    task: asyncio.Task[None] | None = None
    events: list[Event] = field(default_factory=list)
    queues: set[asyncio.Queue[Event | None]] = field(default_factory=set)

    async def collect(self, events: Events) -> None:
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    self.events.append(event)
                    self._publish(event)
        finally:
            self._publish(None)

    def _publish(self, event: Event | None) -> None:
        for queue in self.queues:
            queue.put_nowait(event)


class BackgroundRuns:
    """At most one run of each thread. What still runs when the process ends is interrupted, and can be resumed."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def is_running(self, thread: str) -> bool:
        """Return whether a thread's run has not ended."""
        return thread in self._runs

    async def follow(self, thread: str, start: Callable[[], Events]) -> Events:
        """Yield the events of a thread's run, which is started unless it is running.

        Closing the generator does not stop the run.

        Raises:
            SleuthError: the error that stopped the run.
        """
        run = self._runs.get(thread)
        if run is None:
            run = self._runs[thread] = _Run()
            run.task = asyncio.create_task(run.collect(start()))
            run.task.add_done_callback(lambda task: self._forget(thread, task))
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        for past in run.events:
            queue.put_nowait(past)
        run.queues.add(queue)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            run.queues.discard(queue)
        assert run.task
        await run.task

    def _forget(self, thread: str, task: asyncio.Task[None]) -> None:
        del self._runs[thread]
        if not task.cancelled() and not isinstance(task.exception(), SleuthError | None):
            task.get_loop().call_exception_handler({"message": f"Run {thread} failed", "exception": task.exception()})
