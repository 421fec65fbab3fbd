"""What runs tell while they go on, kept beside their checkpoints: whoever comes back gets what was missed, once.

Every event of a run has a number. It is committed before it is handed on, many at a time; a run does not wait for it.
Between them comes, for those who listen, what is said at the moment: it has no number and is not kept.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic_core import to_json
from sqlalchemy import Column, Integer, MetaData, String, Table, Text, delete, insert, select
from sqlalchemy.engine import Engine

from sleuth.graphs.core import Delta
from sleuth.graphs.persistence import LONGEST_NAME, check_token
from sleuth.graphs.persistence.threads import threads
from sleuth.studio.server.retry import until_stored
from sleuth.studio.server.runs.live_stream import Ears, Said
from sleuth.tools.errors import StoreError, ThreadBusy
from sleuth.tools.storage import is_away, make_tables, transaction

_log = logging.getLogger(__name__)

_PATIENCE = 30.0
"""Seconds that events wait for a store that is away; a shutdown waits for them."""

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
    """One event of a thread; `data` is JSON, and no two have the same `key`. One that is not kept has 0 as its id.

    `token` is that of the lease under which it was told; it is not kept.
    """

    thread: str
    id: int
    name: str
    key: str
    data: str
    token: str | None = None

    def to_row(self) -> dict[str, Any]:
        """Return the columns."""
        return {column.name: getattr(self, column.name) for column in events.columns}


class EventLog:
    """The events of all runs; `run()` has to be under way as long as it is used."""

    def __init__(self, engine: Engine) -> None:
        """Blocks while it makes its table."""
        self._engine = engine
        self._queue: asyncio.Queue[Event] = asyncio.Queue()
        self.ears = Ears()
        make_tables(engine, metadata)

    async def run(self) -> None:
        """Commits what is told until it is cancelled, all that has gathered at a time."""
        while True:
            batch = [await self._queue.get()]
            with suppress(asyncio.QueueEmpty):
                while True:
                    batch.append(self._queue.get_nowait())
            await self._keep(batch)
            for event in batch:
                self._queue.task_done()
                self.ears.ring(event.thread)

    async def _keep(self, batch: Sequence[Event]) -> None:
        """Commits a batch; where that cannot be, each thread's events by themselves, so that no other's are lost."""
        if await self._settled(self._insert, batch):
            return
        for thread in {event.thread: None for event in batch}:
            await self._settled(self._insert_after, [event for event in batch if event.thread == thread])

    async def _settled(self, write: Callable[[Sequence[Event]], None], batch: Sequence[Event]) -> bool:
        """Whether nothing is left to try: all is kept, or the store is away."""
        try:
            await until_stored(partial(asyncio.to_thread, write, batch), "What runs tell", patience=_PATIENCE)
        except (
            StoreError,
            ThreadBusy,
        ) as error:  # the run itself will say so; what is lost is told again when it is resumed
            _log.error("events of runs were not kept: %s", error)
            return is_away(error)
        return True

    async def flush(self) -> None:
        """Waits until all that was told is kept."""
        await self._queue.join()

    async def trail(self, thread: str, *, token: str | None = None) -> "Trail":
        """Where a thread's events go on; `token` is that of its lease."""
        told = await self.after(thread, 0)
        return Trail(self, thread, told, token)

    async def after(self, thread: str, id: int) -> list[Event]:
        """The kept events of a thread that come after a number."""
        wanted = select(events).where(events.c.thread == thread, events.c.id > id).order_by(events.c.id)
        return await asyncio.to_thread(self._read, wanted)

    async def follow(
        self, thread: str, after: int, *, active: Callable[[], bool], words: bool = False
    ) -> AsyncGenerator[Event]:
        """Events after a number as they come; ends when all were given and the run is not active any more.

        With `words` also what is said meanwhile: between the events that it was said between.
        """
        with self.ears.at(thread, deaf=not words, again=after > 0) as ear:
            going_on = True
            while going_on:
                ear.bell.clear()
                if ear.news:
                    ear.news = False
                    going_on = active()  # before reading: what is told later rings the bell
                    for event in await self.after(thread, after):
                        for said in ear.take(event.id - 1):
                            yield _passing(said)
                        after = event.id
                        yield event
                for said in ear.take(after):
                    yield _passing(said)
                if going_on:
                    await ear.bell.wait()

    async def remove(self, thread: str) -> None:
        """Forgets a thread."""
        await asyncio.to_thread(self._delete, thread)

    async def tidy(self) -> None:
        """Forgets the threads that are gone, pruned by the command line for instance."""
        await asyncio.to_thread(self._tidy)

    def put(self, event: Event) -> None:
        """Takes an event to be kept."""
        self._queue.put_nowait(event)

    def _insert(self, batch: Sequence[Event]) -> None:
        with transaction(self._engine, write=True) as connection:
            for thread, token in sorted({(event.thread, event.token or "") for event in batch}):
                check_token(connection, thread, token or None)
            connection.execute(insert(events), [event.to_row() for event in batch])

    def _insert_after(self, told: Sequence[Event]) -> None:
        """Events of one thread, numbered on from what another process may have told of it; none of a key twice."""
        own = select(events.c.id, events.c.key).where(events.c.thread == told[0].thread)
        with transaction(self._engine, write=True) as connection:
            check_token(connection, told[0].thread, told[0].token)
            kept = {key: id for id, key in connection.execute(own)}
            new = [event for event in told if event.key not in kept]
            last = max(kept.values(), default=0)
            if new:
                rows = [replace(event, id=id).to_row() for id, event in enumerate(new, last + 1)]
                connection.execute(insert(events), rows)

    def _read(self, wanted: Any) -> list[Event]:  # noqa: ANN401 - a select
        with transaction(self._engine) as connection:
            return [Event(**row._mapping) for row in connection.execute(wanted)]

    def _delete(self, thread: str) -> None:
        with transaction(self._engine, write=True) as connection:
            connection.execute(delete(events).where(events.c.thread == thread))

    def _tidy(self) -> None:
        with transaction(self._engine, write=True) as connection:
            connection.execute(delete(events).where(events.c.thread.not_in(select(threads.c.id))))


def _passing(said: Said) -> Event:
    name = "delta" if isinstance(said, Delta) else "reset"
    return Event(thread=said.thread, id=0, name=name, key="", data=to_json(said).decode())


class Trail:
    """The events of one thread, each once: what was told before an interruption is not told again."""

    def __init__(self, log: EventLog, thread: str, told: Sequence[Event], token: str | None) -> None:
        self._log = log
        self._thread = thread
        self._token = token
        self._keys = {event.key for event in told}
        self._last = told[-1].id if told else 0

    @property
    def fresh(self) -> bool:
        """Whether nothing was told yet."""
        return not self._last

    def tell(self, name: str, data: dict[str, Any], *, key: str) -> bool:
        """Tells something, unless an event of this key was told before; whether it was new."""
        if key in self._keys:
            return False
        self._keys.add(key)
        self._last += 1
        text = to_json(data).decode()
        event = Event(thread=self._thread, id=self._last, name=name, key=key, data=text, token=self._token)
        self._log.put(event)
        return True

    def say(self, said: Said) -> None:
        """Tells those who listen now, after what was told so far."""
        self._log.ears.say(self._thread, said, after=self._last)
