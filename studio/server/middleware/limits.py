"""Limits: size of request bodies; requests per minute and model tokens per day of each owner."""

import math
import time

from sqlalchemy import Column, Integer, MetaData, String, Table, insert, select, update
from sqlalchemy.engine import Engine
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sleuth.studio.server.schemas.errors import respond
from sleuth.tools.errors import QuotaUsedUp
from sleuth.tools.storage import in_thread, make_tables, transaction
from sleuth.tools.types import now

MINUTE = 60.0
JSON_BYTES = 1 << 20
UPLOAD_BYTES = 256 << 20

metadata = MetaData()
usage = Table(
    "sleuth_serve_usage",
    metadata,
    Column("owner", String(100), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("tokens", Integer, nullable=False),
)


class BodyLimit:
    """Middleware that rejects large bodies, by their Content-Length or while they are received."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        limit = UPLOAD_BYTES if headers.get("content-type", "").startswith("multipart/") else JSON_BYTES
        problem = f"The body is larger than {limit >> 20} MiB."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limit:
            await respond(413, problem)(scope, receive, send)
            return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(413, problem)
            return message

        await self._app(scope, receive_counted, send)


class RateLimit:
    """Middleware that rejects an owner's requests beyond `a_minute`; None disables it."""

    def __init__(self, app: ASGIApp, *, a_minute: int | None) -> None:
        self._app = app
        self._a_minute = a_minute
        self._buckets: dict[str, tuple[float, float]] = {}
        """Of each owner: the requests that were left, and the monotonic time of the last one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        owner = scope.get("state", {}).get("owner")
        wait = self._wait(owner) if scope["type"] == "http" and owner is not None else 0.0
        if wait <= 0:
            await self._app(scope, receive, send)
            return
        problem = f"More than {self._a_minute} requests a minute: wait {math.ceil(wait)} s."
        refusal = respond(429, problem, code="rate_limit_exceeded", headers={"Retry-After": str(math.ceil(wait))})
        await refusal(scope, receive, send)

    def _wait(self, owner: str) -> float:
        """Take one request from an owner's bucket; return 0, or the seconds to wait if the bucket is empty."""
        if self._a_minute is None:
            return 0.0
        each, moment = MINUTE / self._a_minute, time.monotonic()
        left, before = self._buckets.get(owner, (self._a_minute, moment))
        left = min(self._a_minute, left + (moment - before) / each)
        wait = max(0.0, (1 - left) * each)
        self._buckets[owner] = (left if wait else left - 1, moment)
        return wait


class Quota:
    """Daily quota (UTC) of model tokens of each owner."""

    def __init__(self, engine: Engine, a_day: int | None) -> None:
        """Create the table if it is missing; blocks."""
        self._engine = engine
        self._a_day = a_day
        make_tables(engine, metadata)

    async def require(self, owner: str) -> None:
        """Raise QuotaUsedUp if an owner has used the day's tokens; active runs are not interrupted."""
        if self._a_day is None:
            return
        used = await self._used(owner)
        if used >= self._a_day:
            raise QuotaUsedUp(
                f"Today's quota of {self._a_day:,} tokens is used up ({used:,} used). Try again after midnight UTC."
            )

    @in_thread
    def _used(self, owner: str) -> int:
        row = select(usage.c.tokens).where(usage.c.owner == owner, usage.c.day == now()[:10])
        with transaction(self._engine) as connection:
            return connection.scalar(row) or 0

    @in_thread
    def add(self, owner: str, tokens: int) -> None:
        """Add tokens that a run has used."""
        day = now()[:10]
        row = update(usage).where(usage.c.owner == owner, usage.c.day == day)
        with transaction(self._engine, write=True) as connection:
            if not connection.execute(row.values(tokens=usage.c.tokens + tokens)).rowcount:
                connection.execute(insert(usage).values(owner=owner, day=day, tokens=tokens))
