"""Live streams of model replies while they are written. Nothing is stored.

A run never waits for its subscribers: a slow subscriber gets the text of several deltas in one, and a late one gets the
text so far.
"""

import asyncio
import math
from collections import deque
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace

from sleuth.graphs.core.events import Delta, Reset, Step

StreamItem = Delta | Reset


class Subscriber:
    """A reader of one run, with the items that it has not read yet."""

    def __init__(self, *, persisted_only: bool) -> None:
        """Create a subscriber; with `persisted_only` it receives stored events but no deltas."""
        self.persisted_only = persisted_only
        self.wakeup = asyncio.Event()
        self.has_news = True
        self._items: deque[tuple[int, StreamItem]] = deque()

    def notify(self) -> None:
        """Wake the reader: an event was stored, or the run has ended."""
        self.has_news = True
        self.wakeup.set()

    def add(self, item: StreamItem, after: int) -> None:
        """Add an item that follows the event `after`; text is joined with the text before it."""
        last_after, last = self._items[-1] if self._items else (-1, item)
        if isinstance(item, Delta) and isinstance(last, Delta) and (last_after, last.call) == (after, item.call):
            self._items.pop()
            item = replace(item, text=last.text + item.text)
        self._items.append((after, item))
        self.wakeup.set()

    def take(self, up_to: float = math.inf) -> list[StreamItem]:
        """Return the new items up to those that follow the event `up_to`."""
        taken: list[StreamItem] = []
        while self._items and self._items[0][0] <= up_to:
            taken.append(self._items.popleft()[1])
        return taken


class Subscribers:
    """Subscribers of all runs, and the text so far of the calls in the active steps."""

    def __init__(self) -> None:
        self._subscribers: dict[str, set[Subscriber]] = {}
        self._replies: dict[str, dict[str, tuple[int, Delta]]] = {}

    @contextmanager
    def subscribe(self, thread: str, *, persisted_only: bool, is_reconnect: bool) -> Iterator[Subscriber]:
        """Subscribe to a thread; the subscriber first gets the text so far.

        With `is_reconnect` a reset precedes it, because the reader may have received a part of it.
        """
        subscriber = Subscriber(persisted_only=persisted_only)
        for after, reply in self._replies.get(thread, {}).values() if not persisted_only else ():
            if is_reconnect:
                subscriber.add(Reset(**{field.name: getattr(reply, field.name) for field in fields(Reset)}), after)
            if reply.text:
                subscriber.add(reply, after)
        self._subscribers.setdefault(thread, set()).add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers[thread].discard(subscriber)
            if not self._subscribers[thread]:
                del self._subscribers[thread]

    def want_deltas(self, thread: str) -> bool:
        """Return whether a subscriber of the thread receives deltas."""
        return any(not each.persisted_only for each in self._subscribers.get(thread, ()))

    def publish(self, thread: str, item: StreamItem, *, after: int) -> None:
        """Send an item that follows the event `after` to the subscribers of a thread."""
        replies = self._replies.setdefault(thread, {})
        text = ""
        if isinstance(item, Delta):
            text = (replies[item.call][1].text if item.call in replies else "") + item.text
        replies[item.call] = after, Delta(**{**vars(item), "text": text})
        for subscriber in self._subscribers.get(thread, ()):
            if not subscriber.persisted_only:
                subscriber.add(item, after)

    def finish_step(self, thread: str, step: Step) -> None:
        """Forget the replies of a finished step: its event contains the result."""
        replies = self._replies.get(thread, {})
        for call, (_, reply) in [*replies.items()]:
            if (reply.thread, reply.node) == (step.thread, step.node):
                del replies[call]

    def notify(self, thread: str) -> None:
        """Wake the subscribers of a thread."""
        for subscriber in self._subscribers.get(thread, ()):
            subscriber.notify()

    def notify_all(self, *, except_for: Container[str] = ()) -> None:
        """Wake the subscribers of all other threads."""
        for thread in self._subscribers:
            if thread not in except_for:
                self.notify(thread)

    def close(self, thread: str) -> None:
        """Forget the replies of a run that has ended, and wake its subscribers."""
        self._replies.pop(thread, None)
        self.notify(thread)
