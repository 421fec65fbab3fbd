"""How much one owner may ask: so many requests a minute, so many model tokens a day."""

import asyncio
import math
import time
from dataclasses import dataclass

from sqlalchemy import Column, Integer, MetaData, String, Table, insert, select, update
from sqlalchemy.engine import Engine
from starlette.types import ASGIApp, Receive, Scope, Send

from sleuth.studio.server.schemas.errors import respond
from sleuth.tools.errors import QuotaUsedUp
from sleuth.tools.storage import make_tables, transaction
from sleuth.tools.types import now

MINUTE = 60.0

metadata = MetaData()
usage = Table(
    "sleuth_serve_usage",
    metadata,
    Column("owner", String(100), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("tokens", Integer, nullable=False),
)


@dataclass
class _Bucket:
    """Requests that an owner may send at once, refilled with time."""

    left: float
    at: float


class RateLimit:
    """Refuses an owner's requests beyond `a_minute`; None: none."""

    def __init__(self, app: ASGIApp, *, a_minute: int | None) -> None:
        self._app = app
        self._a_minute = a_minute
        self._buckets: dict[str, _Bucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request, unless there were too many."""
        owner = scope.get("state", {}).get("owner")
        wait = self._wait(owner) if scope["type"] == "http" and owner is not None else 0.0
        if wait <= 0:
            await self._app(scope, receive, send)
            return
        told = f"More than {self._a_minute} requests a minute: wait {math.ceil(wait)} s."
        refusal = respond(429, told, code="rate_limit_exceeded", headers={"Retry-After": str(math.ceil(wait))})
        await refusal(scope, receive, send)

    def _wait(self, owner: str) -> float:
        """Takes one request from an owner's bucket; where it is empty, the seconds until there is one."""
        if self._a_minute is None:
            return 0.0
        each, moment = MINUTE / self._a_minute, time.monotonic()
        bucket = self._buckets.setdefault(owner, _Bucket(self._a_minute, moment))
        bucket.left = min(self._a_minute, bucket.left + (moment - bucket.at) / each)
        bucket.at = moment
        if bucket.left < 1:
            return (1 - bucket.left) * each
        bucket.left -= 1
        return 0.0


class Quota:
    """Counts the model tokens of each owner by day (UTC), and says when there are no more."""

    def __init__(self, engine: Engine, a_day: int | None) -> None:
        """Blocks while it makes its table."""
        self._engine = engine
        self._a_day = a_day
        make_tables(engine, metadata)

    async def require(self, owner: str) -> None:
        """Raises QuotaUsedUp where an owner has used up the day's tokens; a run that goes on is not cut off."""
        if self._a_day is None:
            return
        used = await asyncio.to_thread(self._used, owner)
        if used >= self._a_day:
            raise QuotaUsedUp(
                f"Today's {self._a_day:,} tokens are used up ({used:,}); there are more after midnight UTC."
            )

    async def add(self, owner: str, tokens: int) -> None:
        """Counts tokens that a run has used."""
        await asyncio.to_thread(self._add, owner, tokens)

    def _used(self, owner: str) -> int:
        mine = select(usage.c.tokens).where(usage.c.owner == owner, usage.c.day == now()[:10])
        with transaction(self._engine) as connection:
            return connection.scalar(mine) or 0

    def _add(self, owner: str, tokens: int) -> None:
        day = now()[:10]
        mine = update(usage).where(usage.c.owner == owner, usage.c.day == day)
        with transaction(self._engine, write=True) as connection:
            if not connection.execute(mine.values(tokens=usage.c.tokens + tokens)).rowcount:
                connection.execute(insert(usage).values(owner=owner, day=day, tokens=tokens))
