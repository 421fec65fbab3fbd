"""Cooperation of the servers that share a store: each follows and stops runs of the others, and resumes left ones.

Everything is stored, and each server looks for it regularly. Postgres notifications only make that faster.
"""

import asyncio
import logging
from contextlib import aclosing

from sqlalchemy.engine import Engine

from sleuth.studio.server.runs.notifications import STOPS, listen
from sleuth.studio.server.runs.worker import RunWorker
from sleuth.tools.errors import SleuthError
from sleuth.tools.storage import is_database_error

_log = logging.getLogger(__name__)

INTERVAL, INTERVAL_WITHOUT_NOTIFICATIONS = 5.0, 1.0
"""Seconds between two looks at the store."""

RECONNECT = 1.0
"""Seconds before a lost connection is opened again."""


async def cooperate(engine: Engine, worker: RunWorker) -> None:
    """Follow what other servers do, until cancelled."""
    has_notifications = engine.dialect.name == "postgresql"
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_look(worker, INTERVAL if has_notifications else INTERVAL_WITHOUT_NOTIFICATIONS))
        if has_notifications:
            tasks.create_task(_listen(engine, worker))


async def _look(worker: RunWorker, interval: float) -> None:
    """Regularly wake the subscribers of runs elsewhere, stop the runs of requests, and resume runs without a server."""
    while True:
        await asyncio.sleep(interval)
        try:
            worker.subscribers.notify_all(except_for=worker.jobs)
            await worker.cancel_requested()
            await worker.recover()
        except Exception as error:
            if not (is_database_error(error) or isinstance(error, SleuthError)):
                raise
            _log.warning("the runs of other servers cannot be read: %s", error)


async def _listen(engine: Engine, worker: RunWorker) -> None:
    while True:
        try:
            async with aclosing(listen(engine)) as notifications:
                async for channel, thread in notifications:
                    if not channel:  # connected: notifications may have been missed
                        worker.subscribers.notify_all()
                    elif channel == STOPS:
                        await worker.cancel_requested()
                    elif thread not in worker.jobs:
                        worker.subscribers.notify(thread)
        except Exception as error:
            if not is_database_error(error):
                raise
            _log.warning("no notifications from Postgres; connecting again: %s", error)
        await asyncio.sleep(RECONNECT)
