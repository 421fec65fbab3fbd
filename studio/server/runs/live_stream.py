"""Live streams of model replies while they are written. Nothing is stored.

A run never waits for its subscribers: a slow subscriber loses text, and a late one gets the text so far.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace

from sleuth.graphs.core.events import Delta, Reset, Step

MAX_WAITING = 100_000
"""Maximum characters that wait for a subscriber."""

StreamItem = Delta | Reset


class Subscriber:
    """A reader of one run, with a bounded queue of the text that it has not received yet."""

    def __init__(self, *, persisted_only: bool) -> None:
        """Create a subscriber; with `persisted_only` it receives stored events but no deltas."""
        self.persisted_only = persisted_only
        self.wakeup = asyncio.Event()
        self.has_news = True
        self._waiting: deque[tuple[int, StreamItem]] = deque()  # each with the number of the event that it follows
        self._size = 0
        self._dropped: set[str] = set()

    def notify(self) -> None:
        """Wake the reader: an event was stored, or the run has ended."""
        self.has_news = True
        self.wakeup.set()

    def push(self, item: StreamItem, after: int) -> None:
        """Queue an item that follows the event `after`; if too much waits, replace it with resets."""
        if self.persisted_only or (isinstance(item, Delta) and item.call in self._dropped):
            return
        self._dropped.discard(item.call)
        self._waiting.append((after, item))
        self._size += _size_of(item)
        if self._size > MAX_WAITING:
            self._drop()
        self.wakeup.set()

    def take(self, up_to: float = math.inf) -> list[tuple[int, StreamItem]]:
        """Return the items up to those that follow the event `up_to`, each with the event that it follows.

        Adjacent deltas of one call are joined.
        """
        taken: list[tuple[int, StreamItem]] = []
        while self._waiting and self._waiting[0][0] <= up_to:
            after, item = self._waiting.popleft()
            self._size -= _size_of(item)
            if taken and taken[-1][0] == after and (joined := _join(taken[-1][1], item)):
                taken[-1] = after, joined
            else:
                taken.append((after, item))
        return taken

    def _drop(self) -> None:
        """Replace all waiting items with resets; ignore further deltas of these calls until they restart."""
        dropped = {item.call: (after, reset_of(item)) for after, item in self._waiting}
        self._waiting = deque(sorted(dropped.values(), key=lambda each: each[0]))
        self._dropped |= dropped.keys()
        self._size = 0


class Subscribers:
    """Subscribers of all runs, and the text so far of the calls in the active steps."""

    def __init__(self) -> None:
        self._subscribers: dict[str, set[Subscriber]] = {}
        self._text_so_far: dict[str, dict[str, tuple[int, StreamItem]]] = {}
        self._forwarded: dict[str, tuple[str, dict[str, tuple[int, Reset]]]] = {}
        self.on_subscribe: Callable[[str], None] = lambda _thread: None
        """Called with a thread when a reader here subscribes to its deltas."""

    @contextmanager
    def subscribe(
        self, thread: str, *, persisted_only: bool, is_reconnect: bool, is_local: bool = True
    ) -> Iterator[Subscriber]:
        """Subscribe to a thread; the subscriber first gets the text so far.

        With `is_reconnect` a reset precedes it, because the reader may have received a part of it. `is_local` is False
        for the readers of another server.
        """
        subscriber = Subscriber(persisted_only=persisted_only)
        for after, item in self._text_so_far.get(thread, {}).values():
            if is_reconnect:
                subscriber.push(reset_of(item), after)
            if isinstance(item, Delta):
                subscriber.push(item, after)
        self._subscribers.setdefault(thread, set()).add(subscriber)
        if is_local and not persisted_only:
            self.on_subscribe(thread)
        try:
            yield subscriber
        finally:
            self._subscribers[thread].discard(subscriber)
            if not self._subscribers[thread]:
                del self._subscribers[thread]

    def want_deltas(self, thread: str) -> bool:
        """Return whether a subscriber of the thread receives deltas."""
        return any(not each.persisted_only for each in self._subscribers.get(thread, ()))

    def followed(self) -> list[str]:
        """Return the threads that have a subscriber."""
        return [*self._subscribers]

    def forward(self, thread: str, item: StreamItem, *, after: int, source: str) -> None:
        """Send an item of another server, `source`; if that is a new one, withdraw the text of the last one first."""
        if thread not in self._subscribers:
            return
        if self._forwarded.get(thread, (source,))[0] != source:
            self._withdraw(thread)
        _, calls = self._forwarded.setdefault(thread, (source, {}))
        calls[item.call] = after, reset_of(item)
        for subscriber in self._subscribers[thread]:
            subscriber.push(item, after)

    def _withdraw(self, thread: str) -> None:
        """Withdraw the text of a server that does not run the thread any more."""
        _, calls = self._forwarded.pop(thread, ("", {}))
        for after, reset in calls.values():
            for subscriber in self._subscribers.get(thread, ()):
                subscriber.push(reset, after)

    def publish(self, thread: str, item: StreamItem, *, after: int) -> None:
        """Send an item that follows the event `after` to the subscribers of a thread."""
        self._withdraw(thread)
        so_far = self._text_so_far.setdefault(thread, {})
        _, before = so_far.get(item.call, (0, None))
        so_far[item.call] = (after, _join(before, item) or item)
        for subscriber in self._subscribers.get(thread, ()):
            subscriber.push(item, after)

    def finish_step(self, thread: str, step: Step) -> None:
        """Remove the text so far of a finished step: its event contains the result."""
        so_far = self._text_so_far.get(thread, {})
        for call, (_, item) in [*so_far.items()]:
            if (item.thread, item.node) == (step.thread, step.node):
                del so_far[call]

    def notify(self, thread: str) -> None:
        """Wake the subscribers of a thread."""
        for subscriber in self._subscribers.get(thread, ()):
            subscriber.notify()

    def notify_all(self) -> None:
        """Wake all subscribers."""
        for thread in [*self._subscribers]:
            self.notify(thread)

    def close(self, thread: str) -> None:
        """Remove the text so far of a run that has ended, and wake its subscribers."""
        self._text_so_far.pop(thread, None)
        self._forwarded.pop(thread, None)
        self.notify(thread)


def _size_of(item: StreamItem) -> int:
    return len(item.text) if isinstance(item, Delta) else 0


def _join(first: StreamItem | None, second: StreamItem) -> Delta | None:
    """Return both as one delta if they belong to one call."""
    if isinstance(first, Delta) and isinstance(second, Delta) and first.call == second.call:
        return replace(first, text=first.text + second.text)
    return None


def reset_of(item: StreamItem) -> Reset:
    """Return the reset that withdraws all text of an item's call."""
    return Reset(**{field.name: getattr(item, field.name) for field in fields(Reset)})
