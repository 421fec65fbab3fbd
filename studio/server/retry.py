"""Retries of writes while the database is unavailable."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from time import monotonic

from sleuth.tools.storage import is_away

_log = logging.getLogger(__name__)

RETRY_INTERVAL = 1.0
"""Seconds between two attempts."""


async def retry_until_stored(write: Callable[[], Awaitable[None]], subject: str, *, max_wait: float = math.inf) -> None:
    """Call `write` until it succeeds, for up to `max_wait` seconds while the database is unavailable.

    The first failure is logged with `subject`. Any other error is raised immediately.
    """
    is_logged, deadline = False, monotonic() + max_wait
    while True:
        try:
            return await write()
        except Exception as error:
            if not is_away(error) or monotonic() > deadline:
                raise
            if not is_logged:
                _log.error("%s cannot be stored yet; retrying: %s", subject, getattr(error, "orig", error))
            is_logged = True
        await asyncio.sleep(RETRY_INTERVAL)
