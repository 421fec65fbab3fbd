"""Cooperation of the servers that share a store: each follows and stops runs of the others, and resumes left ones.

Everything is stored, and each server looks for it regularly. Postgres notifications only make that faster.
"""

import asyncio
import logging
from contextlib import aclosing

from sqlalchemy.engine import Engine

from sleuth.studio.server.runs.event_log import EventLog
from sleuth.studio.server.runs.notifications import STOPS, listen
from sleuth.studio.server.runs.worker import RunWorker
from sleuth.tools.errors import SleuthError
from sleuth.tools.storage import is_away

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

    async def run(self) -> None:
        """Take note of the other servers, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_regularly())
            if self._has_notifications:
                tasks.create_task(self._listen())

    async def look(self) -> None:
        """Wake the followers of all runs, stop the runs of requests, and resume runs that no server runs."""
        self._log.subscribers.notify_all()
        await self._worker.cancel_requested()
        await self._worker.recover()

    async def _look_regularly(self) -> None:
        interval = INTERVAL if self._has_notifications else INTERVAL_WITHOUT_NOTIFICATIONS
        while True:
            await asyncio.sleep(interval)
            try:
                await self.look()
            except Exception as error:
                if not (is_away(error) or isinstance(error, SleuthError)):
                    raise
                _log.warning("the runs of other servers cannot be read: %s", error)

    async def _listen(self) -> None:
        while True:
            try:
                async with aclosing(listen(self._engine)) as notifications:
                    async for channel, thread in notifications:
                        await self._handle(channel, thread)
            except Exception as error:
                if not is_away(error):
                    raise
                _log.warning("no notifications from Postgres; connecting again: %s", error)
            await asyncio.sleep(RECONNECT)

    async def _handle(self, channel: str, thread: str) -> None:
        if not channel:  # connected: notifications may have been missed
            self._log.subscribers.notify_all()
        elif channel == STOPS:
            await self._worker.cancel_requested()
        elif not self._worker.is_here(thread):
            self._log.subscribers.notify(thread)
