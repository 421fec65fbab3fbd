"""Cooperation of the servers that share a store: each follows and stops runs of the others, and resumes left ones.

Everything is stored, and each server looks for it regularly. Postgres notifications only make that faster.
"""

import asyncio
import logging
from contextlib import aclosing, suppress

from sqlalchemy.engine import Engine

from sleuth.studio.server.runs.event_log import EventLog
from sleuth.studio.server.runs.forwarding import Forwarding
from sleuth.studio.server.runs.notifications import DELTAS, ENDS, LISTENERS, STOPS, listen
from sleuth.studio.server.runs.worker import RunWorker
from sleuth.tools.errors import SleuthError
from sleuth.tools.storage import is_database_error

_log = logging.getLogger(__name__)

INTERVAL, INTERVAL_WITHOUT_NOTIFICATIONS = 5.0, 1.0
"""Seconds between two looks at the store."""

RECONNECT = 1.0
"""Seconds before a lost connection is opened again."""


class Peers:
    """The part of a server that takes note of the others; `run()` must be active."""

    def __init__(self, engine: Engine, worker: RunWorker, log: EventLog) -> None:
        self._engine = engine
        self._worker = worker
        self._log = log
        self._has_notifications = engine.dialect.name == "postgresql"
        self._forwarding = Forwarding(engine, log.subscribers, worker.is_here)
        self._new: asyncio.Queue[str] = asyncio.Queue()

    async def run(self) -> None:
        """Take note of the other servers, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._look_regularly())
                if self._has_notifications:
                    self._log.subscribers.on_subscribe = self._new.put_nowait
                    tasks.create_task(self._listen())
                    tasks.create_task(self._ask_for_new())
        finally:
            self._forwarding.close()

    async def look(self) -> None:
        """Wake the followers of runs elsewhere, stop the runs of requests, and resume runs that no server runs."""
        subscribers = self._log.subscribers
        elsewhere = [thread for thread in subscribers.followed() if not self._worker.is_here(thread)]
        for thread in elsewhere:
            subscribers.notify(thread)
        await self._worker.cancel_requested()
        await self._worker.recover()
        if self._has_notifications and (wanted := [thread for thread in elsewhere if subscribers.want_deltas(thread)]):
            await self._forwarding.ask(wanted, is_new=False)

    async def _ask_for_new(self) -> None:
        """Ask other servers for the text of each thread that gets a follower here."""
        while True:
            if not self._worker.is_here(thread := await self._new.get()):
                with suppress(SleuthError):  # the next look asks again
                    await self._forwarding.ask([thread], is_new=True)

    async def _look_regularly(self) -> None:
        interval = INTERVAL if self._has_notifications else INTERVAL_WITHOUT_NOTIFICATIONS
        while True:
            await asyncio.sleep(interval)
            try:
                await self.look()
            except Exception as error:
                if not (is_database_error(error) or isinstance(error, SleuthError)):
                    raise
                _log.warning("the runs of other servers cannot be read: %s", error)

    async def _listen(self) -> None:
        while True:
            try:
                async with aclosing(listen(self._engine)) as notifications:
                    async for channel, payload in notifications:
                        await self._handle(channel, payload)
            except Exception as error:
                if not is_database_error(error):
                    raise
                _log.warning("no notifications from Postgres; connecting again: %s", error)
            await asyncio.sleep(RECONNECT)

    async def _handle(self, channel: str, payload: str) -> None:
        if not channel:  # connected: notifications may have been missed
            self._log.subscribers.notify_all()
        elif channel == STOPS:
            await self._worker.cancel_requested()
        elif channel in (LISTENERS, DELTAS):
            self._forwarding.handle(channel, payload)
        elif not self._worker.is_here(payload):
            if channel == ENDS:
                self._log.subscribers.close(payload)
            else:
                self._log.subscribers.notify(payload)
