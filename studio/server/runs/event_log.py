"""The event log of runs, stored next to their checkpoints: a client that reconnects gets each missed event once.

Every event of a run has a number, and is committed before it is delivered. Deltas of model replies are delivered
between the events. They have no number and are not stored. A run never waits for its subscribers.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

from pydantic_core import to_json
from sqlalchemy import func, insert, select
from sqlalchemy.engine import Engine

from sleuth.graphs.core.events import Delta, Reset, Step
from sleuth.graphs.persistence.tables import events
from sleuth.graphs.persistence.thread_locks import check_token
from sleuth.studio.server.retry import retry_until_stored
from sleuth.tools.storage.database import batches, in_thread, transaction

_MAX_WAIT = 30.0
"""Seconds that a run waits for an unavailable store before it fails."""

ENDS = ("answer", "error", "stopped")
"""The events that end a run."""

StreamItem = Delta | Reset


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One event of a thread; `data` is JSON, and `key` is unique in the thread. An event with id 0 is not stored."""

    thread: str
    id: int
    name: str
    key: str
    data: str


@dataclass(eq=False, kw_only=True, slots=True)
class _Subscriber:
    """A client that follows a run, with the deltas that it has not received yet, if it receives them.

    `after`: the number of the last event that it has received. `ends`: its stream ends with the run.
    """

    after: int
    ends: bool
    with_deltas: bool
    wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    has_news: bool = True
    items: deque[tuple[int, StreamItem]] = field(default_factory=deque)

    def notify(self) -> None:
        """Wake the client: an event was stored, or the run has ended."""
        self.has_news = True
        self.wakeup.set()

    def add(self, item: StreamItem, after: int) -> None:
        """Add an item that follows the event `after`."""
        self.items.append((after, item))
        self.wakeup.set()

    def take(self, up_to: float) -> Iterator[Event]:
        """Yield the items up to those that follow the event `up_to`."""
        while self.items and self.items[0][0] <= up_to:
            item = self.items.popleft()[1]
            yield Event(thread=item.thread, id=0, name=item.kind, key="", data=to_json(item).decode())


class EventLog:
    """Events of all runs, and the text so far of the calls in their active steps."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._subscribers: defaultdict[str, set[_Subscriber]] = defaultdict(set)
        self._replies: dict[str, dict[str, tuple[int, Delta]]] = {}
        self._last: dict[str, int] = {}
        """The number of the last event of each thread that runs here."""

    async def open(self, thread: str) -> int:
        """Prepare a thread for further events; return the number of its last one, 0 if it has none."""
        last = self._last[thread] = await self.last(thread)
        return last

    @in_thread
    def last(self, thread: str) -> int:
        """Return the number of the last stored event of a thread, 0 if it has none."""
        with transaction(self._engine) as connection:
            return connection.scalar(select(func.max(events.c.id)).where(events.c.thread == thread)) or 0

    @in_thread
    def ends(self, thread: str) -> list[int]:
        """Return the numbers of the events that end a run of a thread, in order."""
        query = select(events.c.id).where(events.c.thread == thread, events.c.name.in_(ENDS)).order_by(events.c.id)
        with transaction(self._engine) as connection:
            return [*connection.scalars(query)]

    @in_thread
    def finished_tasks(self, thread: str) -> set[str]:
        """Return the tasks of a thread that stored events show as finished."""
        query = select(events.c.key).where(events.c.thread == thread, events.c.name == "step")
        with transaction(self._engine) as connection:
            keys = [key.split() for key in connection.scalars(query)]
        return {task for task, state in keys if state == "finished"}

    @in_thread
    def after(self, thread: str, id: int) -> list[Event]:
        """Return the stored events of a thread after a number."""
        query = select(events).where(events.c.thread == thread, events.c.id > id).order_by(events.c.id)
        with transaction(self._engine) as connection:
            return [Event(**row._mapping) for row in connection.execute(query)]

    async def follow(
        self,
        thread: str,
        after: int,
        *,
        is_active: Callable[[], Awaitable[bool]],
        ends: bool = True,
        with_deltas: bool = False,
    ) -> AsyncGenerator[Event]:
        """Yield events after a number as they are stored, until the run has ended and all were yielded.

        Without `ends`, also wait for the next run of a thread that is idle. With `with_deltas`, also yield the deltas
        between the events.
        """
        with self._subscribe(_Subscriber(after=after, ends=ends, with_deltas=with_deltas), thread) as subscriber:
            active = True
            while active:
                subscriber.wakeup.clear()
                if subscriber.has_news:
                    subscriber.has_news = False
                    active = await is_active()  # before reading: an event that is stored later wakes the subscriber
                    for event in await self.after(thread, subscriber.after):
                        for delta in subscriber.take(event.id - 1):
                            yield delta
                        subscriber.after = event.id
                        yield event
                for delta in subscriber.take(subscriber.after):
                    yield delta
                if active:
                    await subscriber.wakeup.wait()

    @contextmanager
    def _subscribe(self, subscriber: _Subscriber, thread: str) -> Iterator[_Subscriber]:
        """Subscribe to a thread; the subscriber first gets the text so far.

        If it reconnects, a reset precedes the text, because the client may have received a part of it.
        """
        replies = self._replies.get(thread, {}) if subscriber.with_deltas else {}
        for after, reply in replies.values():
            if subscriber.after:
                about = {field.name: getattr(reply, field.name) for field in fields(Reset)}
                subscriber.add(Reset(**about | {"kind": "reset"}), after)
            if reply.text:
                subscriber.add(reply, after)
        self._subscribers[thread].add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers[thread].remove(subscriber)
            if not self._subscribers[thread]:
                del self._subscribers[thread]

    def want_deltas(self, thread: str) -> bool:
        """Return whether a subscriber of the thread receives deltas."""
        return any(subscriber.with_deltas for subscriber in self._subscribers.get(thread, ()))

    def publish_delta(self, thread: str, item: StreamItem) -> None:
        """Send a delta or reset to the current subscribers of an open thread, after its last event."""
        replies, after = self._replies.setdefault(thread, {}), self._last[thread]
        text = ""
        if isinstance(item, Delta):
            text = (replies[item.call][1].text if item.call in replies else "") + item.text
        replies[item.call] = after, Delta(**{**vars(item), "kind": "delta", "text": text})
        for subscriber in self._subscribers.get(thread, ()):
            if subscriber.with_deltas:
                subscriber.add(item, after)

    def finish_step(self, thread: str, step: Step) -> None:
        """Forget the replies of a finished step: its event contains the result."""
        replies = self._replies.get(thread, {})
        for call, (_, reply) in [*replies.items()]:
            if (reply.thread, reply.node) == (step.thread, step.node):
                del replies[call]

    def close(self, thread: str) -> None:
        """Forget the replies of a run that has ended, and wake its subscribers."""
        self._replies.pop(thread, None)
        self._last.pop(thread, None)
        self.notify(thread)

    def notify(self, thread: str) -> None:
        """Wake the subscribers of a thread."""
        for subscriber in self._subscribers.get(thread, ()):
            subscriber.notify()

    def notify_all(self) -> None:
        """Wake all subscribers."""
        for thread in self._subscribers:
            self.notify(thread)

    async def look(self, *, active: Container[str]) -> None:
        """Wake the subscribers that lack events, which other servers have stored, or whose run is no longer active."""
        last = await self._last_of([*self._subscribers])
        for thread, subscribers in self._subscribers.items():
            for subscriber in subscribers:
                if last.get(thread, 0) > subscriber.after or (subscriber.ends and thread not in active):
                    subscriber.notify()

    @in_thread
    def _last_of(self, threads: list[str]) -> dict[str, int]:
        """Return the numbers of the last events of those threads that have some."""
        query = select(events.c.thread, func.max(events.c.id)).group_by(events.c.thread)
        last: dict[str, int] = {}
        for part in batches(threads):
            with transaction(self._engine) as connection:
                rows = connection.execute(query.where(events.c.thread.in_(part)))
                last |= {str(thread): int(id) for thread, id in rows}
        return last

    async def append(self, thread: str, name: str, data: dict[str, Any], *, key: str, token: str | None = None) -> bool:
        """Store an event of an open thread and wake its subscribers; `token` is the fencing token of its lock.

        Return False without storing it if the thread has an event of this key: it was stored before an interruption.

        Raises:
            ThreadBusy: another process has locked the thread since.
            StoreError: the store was not available for 30 seconds.
        """
        event = Event(thread=thread, id=self._last[thread] + 1, name=name, key=key, data=to_json(data).decode())
        storing = asyncio.ensure_future(self._store(event, token))
        try:
            return await asyncio.shield(storing)
        except asyncio.CancelledError:
            await asyncio.wait([storing])  # its thread continues, and the next event needs another id
            raise

    async def _store(self, event: Event, token: str | None) -> bool:
        write = partial(self._insert, event, token)
        is_new = await retry_until_stored(write, f"An event of run {event.thread}", max_wait=_MAX_WAIT)
        self._last[event.thread] += is_new
        self.notify(event.thread)
        return is_new

    @in_thread
    def _insert(self, event: Event, token: str | None) -> bool:
        """Insert an event, unless the thread has it; return False if it was stored before."""
        query = select(events.c.id).where(events.c.thread == event.thread, events.c.key == event.key)
        with transaction(self._engine, write=True) as connection:
            check_token(connection, event.thread, token)
            if id := connection.scalar(query):
                return bool(id == event.id)  # an attempt with a lost connection has stored it
            connection.execute(insert(events), asdict(event))
            return True
