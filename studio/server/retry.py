"""Retries of writes while the database is unavailable."""

import logging
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sleuth.tools.retry import retry
from sleuth.tools.storage.database import is_away

_log = logging.getLogger(__name__)

T = TypeVar("T")


async def retry_until_stored(write: Callable[[], Awaitable[T]], subject: str, *, max_wait: float = math.inf) -> T:
    """Call `write` every second until it succeeds, for up to `max_wait` seconds while the database is unavailable.

    The first failure is logged with `subject`. Any other error is raised immediately.
    """

    def log(error: Exception) -> None:
        _log.error("%s cannot be stored yet; retrying: %s", subject, getattr(error, "orig", error))

    return await retry(write, is_away, pause=1.0, max_wait=max_wait, on_wait=log)
