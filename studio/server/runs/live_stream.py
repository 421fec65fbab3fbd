"""Live streams of model replies while they are written. Nothing is stored.

A run never waits for its subscribers: a slow subscriber gets the text of several deltas in one, and a late one gets the
text so far.
"""

import asyncio
import math
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from sleuth.graphs.core.events import Delta, Reset, Step

StreamItem = Delta | Reset


@dataclass(kw_only=True)
class _Reply:
    """The text of a call since its last reset, and the number of the event that it follows."""

    call: Reset
    after: int = 0
    resets: int = 0
    text: str = ""
    is_finished: bool = False


@dataclass(kw_only=True)
class _Position:
    """The part of a reply that a subscriber has received."""

    reply: _Reply
    resets: int
    sent: int = 0


class Subscriber:
    """A reader of one run, with its position in each reply."""

    def __init__(self, *, persisted_only: bool) -> None:
        """Create a subscriber; with `persisted_only` it receives stored events but no deltas."""
        self.persisted_only = persisted_only
        self.wakeup = asyncio.Event()
        self.has_news = True
        self._positions: dict[str, _Position] = {}

    def notify(self) -> None:
        """Wake the reader: an event was stored, or the run has ended."""
        self.has_news = True
        self.wakeup.set()

    def follow(self, reply: _Reply, *, resets: int) -> None:
        """Follow a reply; a reset precedes its text if it has another number of resets."""
        known = self._positions.get(reply.call.call)
        if known is None or known.reply is not reply:
            self._positions[reply.call.call] = _Position(reply=reply, resets=-1 if known else resets)
        self.wakeup.set()

    def take(self, up_to: float = math.inf) -> list[StreamItem]:
        """Return the new text of the replies up to those that follow the event `up_to`, and their resets."""
        taken: list[StreamItem] = []
        for call, position in [*self._positions.items()]:
            reply = position.reply
            if reply.after > up_to:
                continue
            if position.resets != reply.resets:
                taken.append(reply.call)
                position.resets, position.sent = reply.resets, 0
            if text := reply.text[position.sent :]:
                taken.append(Delta(**vars(reply.call), text=text))
                position.sent = len(reply.text)
            if reply.is_finished:
                del self._positions[call]
        return taken


class Subscribers:
    """Subscribers of all runs, and the replies of the calls in the active steps."""

    def __init__(self) -> None:
        self._subscribers: dict[str, set[Subscriber]] = {}
        self._replies: dict[str, dict[str, _Reply]] = {}

    @contextmanager
    def subscribe(self, thread: str, *, persisted_only: bool, is_reconnect: bool) -> Iterator[Subscriber]:
        """Subscribe to a thread; the subscriber first gets the text so far.

        With `is_reconnect` a reset precedes it, because the reader may have received a part of it.
        """
        subscriber = Subscriber(persisted_only=persisted_only)
        for reply in self._replies.get(thread, {}).values() if not persisted_only else ():
            subscriber.follow(reply, resets=-1 if is_reconnect else reply.resets)
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
        call = Reset(**{field.name: getattr(item, field.name) for field in fields(Reset)})
        reply = self._replies.setdefault(thread, {}).setdefault(item.call, _Reply(call=call))
        reply.after = after
        if isinstance(item, Delta):
            reply.text += item.text
        else:
            reply.text, reply.resets = "", reply.resets + 1
        for subscriber in self._subscribers.get(thread, ()):
            if not subscriber.persisted_only:
                subscriber.follow(reply, resets=0)

    def finish_step(self, thread: str, step: Step) -> None:
        """Forget the replies of a finished step: its event contains the result."""
        replies = self._replies.get(thread, {})
        for call, reply in [*replies.items()]:
            if (reply.call.thread, reply.call.node) == (step.thread, step.node):
                reply.is_finished = True
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
