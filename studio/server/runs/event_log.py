"""The event log of runs, stored next to their checkpoints: a client that reconnects gets each missed event once.

Every event of a run has a number. It is committed before it is delivered, in batches; a run does not wait for it.
Deltas of model replies are delivered between the events. They have no number and are not stored.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic_core import to_json
from sqlalchemy import Column, ColumnElement, Integer, MetaData, String, Table, Text, delete, insert, select
from sqlalchemy.engine import Engine

from sleuth.graphs.core.events import Delta
from sleuth.graphs.persistence import LONGEST_NAME, check_token
from sleuth.graphs.persistence.tables import threads
from sleuth.studio.server.retry import retry_until_stored
from sleuth.studio.server.runs.live_stream import StreamItem, Subscribers
from sleuth.tools.errors import StoreError, ThreadBusy
from sleuth.tools.storage import in_thread, make_tables, transaction

_log = logging.getLogger(__name__)

_MAX_WAIT = 30.0
"""Seconds that events wait for an unavailable store; a shutdown waits for them."""

metadata = MetaData()
events = Table(
    "sleuth_serve_events",
    metadata,
    Column("thread", String(LONGEST_NAME), primary_key=True),
    Column("id", Integer, primary_key=True),
    Column("name", String(20), nullable=False),
    Column("key", String(200), nullable=False),
    Column("data", Text, nullable=False),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One event of a thread; `data` is JSON, and `key` is unique in the thread. An event with id 0 is not stored.

    `token` is the fencing token of the thread lock under which it was published; it is not stored.
    """

    thread: str
    id: int
    name: str
    key: str
    data: str
    token: str | None = None


class EventLog:
    """Events of all runs; `run()` must be active while it is used."""

    def __init__(self, engine: Engine) -> None:
        """Create the table if it is missing; blocks."""
        self._engine = engine
        self._queue: asyncio.Queue[Event] = asyncio.Queue()
        self.subscribers = Subscribers()
        make_tables(engine, metadata)

    async def run(self) -> None:
        """Commit queued events in batches, until cancelled."""
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get_nowait())
            threads = dict.fromkeys(event.thread for event in batch)
            await asyncio.gather(*(self._commit([each for each in batch if each.thread == id]) for id in threads))
            for _ in batch:
                self._queue.task_done()

    async def _commit(self, batch: Sequence[Event]) -> None:
        """Commit events of one thread, and wake its subscribers."""
        thread = batch[0].thread
        try:
            await retry_until_stored(partial(self._insert, batch), "The events of runs", max_wait=_MAX_WAIT)
        except (StoreError, ThreadBusy) as error:  # the run fails too, and publishes lost events when it is resumed
            _log.error("events of runs were not stored: %s", error)
        self.subscribers.notify(thread)

    @property
    def waiting(self) -> int:
        """The number of events that are not stored yet."""
        return self._queue.qsize()

    async def flush(self) -> None:
        """Wait until all queued events are stored."""
        await self._queue.join()

    async def writer(self, thread: str, *, token: str | None = None) -> "EventWriter":
        """Return a writer that appends to a thread's events; `token` is the fencing token of its lock."""
        return EventWriter(self, thread, await self.after(thread, 0), token)

    @in_thread
    def after(self, thread: str, id: int) -> list[Event]:
        """Return the stored events of a thread after a number."""
        wanted = select(events).where(events.c.thread == thread, events.c.id > id).order_by(events.c.id)
        with transaction(self._engine) as connection:
            return [Event(**row._mapping) for row in connection.execute(wanted)]

    async def follow(
        self, thread: str, after: int, *, is_active: Callable[[], Awaitable[bool]], with_deltas: bool = False
    ) -> AsyncGenerator[Event]:
        """Yield events after a number as they are stored, until the run has ended and all were yielded.

        With `with_deltas`, also yield the deltas between them.
        """
        subscription = self.subscribers.subscribe(thread, persisted_only=not with_deltas, is_reconnect=after > 0)
        with subscription as subscriber:
            active = True
            while active:
                subscriber.wakeup.clear()
                if subscriber.has_news:
                    subscriber.has_news = False
                    active = await is_active()  # before reading: an event that is stored later wakes the subscriber
                    for event in await self.after(thread, after):
                        for item in subscriber.take(event.id - 1):
                            yield _transient_event(item)
                        after = event.id
                        yield event
                for item in subscriber.take(after):
                    yield _transient_event(item)
                if active:
                    await subscriber.wakeup.wait()

    async def remove(self, thread: str) -> None:
        """Remove the events of a thread."""
        await self._delete(events.c.thread == thread)

    async def remove_orphans(self) -> None:
        """Remove the events of deleted threads, pruned by the command line for instance."""
        await self._delete(events.c.thread.not_in(select(threads.c.id)))

    def put(self, event: Event) -> None:
        """Queue an event to be stored."""
        self._queue.put_nowait(event)

    @in_thread
    def _insert(self, batch: Sequence[Event]) -> None:
        """Insert events of one thread, without those that an attempt with a lost connection has stored."""
        first = batch[0]
        stored = select(events.c.key).where(events.c.thread == first.thread, events.c.id >= first.id)
        with transaction(self._engine, write=True) as connection:
            check_token(connection, first.thread, first.token)
            known = set(connection.scalars(stored))
            columns = events.columns.keys()
            rows = [{name: getattr(event, name) for name in columns} for event in batch if event.key not in known]
            if rows:
                connection.execute(insert(events), rows)

    @in_thread
    def _delete(self, condition: ColumnElement[bool]) -> None:
        with transaction(self._engine, write=True) as connection:
            connection.execute(delete(events).where(condition))


def _transient_event(item: StreamItem) -> Event:
    name = "delta" if isinstance(item, Delta) else "reset"
    return Event(thread=item.thread, id=0, name=name, key="", data=to_json(item).decode())


class EventWriter:
    """Appends the events of one thread, each once: events stored before an interruption are skipped."""

    def __init__(self, log: EventLog, thread: str, stored: Sequence[Event], token: str | None) -> None:
        self._log = log
        self._thread = thread
        self._token = token
        self._keys = {event.key for event in stored}
        self._last = stored[-1].id if stored else 0

    @property
    def is_empty(self) -> bool:
        """True if the thread has no events yet."""
        return not self._last

    def append(self, name: str, data: dict[str, Any], *, key: str) -> bool:
        """Append an event, unless the thread has one of this key; return whether it was appended."""
        if key in self._keys:
            return False
        self._keys.add(key)
        self._last += 1
        text = to_json(data).decode()
        self._log.put(Event(thread=self._thread, id=self._last, name=name, key=key, data=text, token=self._token))
        return True

    def publish_delta(self, item: StreamItem) -> None:
        """Send a delta or reset to the current subscribers, after the events appended so far."""
        self._log.subscribers.publish(self._thread, item, after=self._last)
