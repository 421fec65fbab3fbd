"""Writing down what has ended, also where the store cannot be used at that moment."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from time import monotonic

from sleuth.tools.storage import is_away

_log = logging.getLogger(__name__)

AGAIN = 1.0
"""Seconds between two attempts."""


async def until_stored(write: Callable[[], Awaitable[None]], what: str, *, patience: float = math.inf) -> None:
    """Writes something down, again and again for so many seconds while the database is away; then raises what it says.

    Any other error is raised at once.
    """
    told, until = False, monotonic() + patience
    while True:
        try:
            return await write()
        except Exception as error:
            if not is_away(error) or monotonic() > until:
                raise
            if not told:
                _log.error("%s cannot be written down yet, and is tried again: %s", what, getattr(error, "orig", error))
            told = True
        await asyncio.sleep(AGAIN)
