"""Limits: size of request bodies; items per minute, such as requests; model tokens per day of each owner."""

import math
import time

from sqlalchemy import Column, Integer, MetaData, String, Table, insert, select, update
from sqlalchemy.engine import Engine
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sleuth.studio.server.schemas.errors import respond
from sleuth.tools.errors import QuotaUsedUp
from sleuth.tools.storage.database import in_thread, make_tables, transaction
from sleuth.tools.types import now

MINUTE = 60.0
_MAX_KEYS = 10_000
JSON_BYTES = 1 << 20
UPLOAD_BYTES = 256 << 20
UPLOADS = "/v1/documents"
"""The only path that accepts more than JSON_BYTES."""

JSON_VALUES = 10_000
"""A conversation of a thousand messages has fewer. A body of 1 MiB could have 500,000, whose reading takes seconds."""

metadata = MetaData()
usage = Table(
    "sleuth_serve_usage",
    metadata,
    Column("owner", String(100), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("tokens", Integer, nullable=False),
)


def count_values(text: bytes) -> int:
    """Return how many values a JSON text has at most, without reading them."""
    outside = b"".join(text.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    return 1 + sum(outside.count(mark) for mark in (b",", b"[", b"{"))


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
        is_form = headers.get("content-type", "").lower().startswith("multipart/form-data")
        limit = UPLOAD_BYTES if is_form and scope["path"] == UPLOADS else JSON_BYTES
        problem = f"The body is larger than {limit >> 20} MiB."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limit:
            await respond(413, problem)(scope, receive, send)
            return
        received, json = 0, bytearray()

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            body = message.get("body", b"")
            received += len(body)
            if received > limit:
                raise HTTPException(413, problem)
            if limit == JSON_BYTES:
                json.extend(body)
                if not message.get("more_body") and count_values(bytes(json)) > JSON_VALUES:
                    raise HTTPException(413, f"The JSON has more than {JSON_VALUES:,} values.")
            return message

        await self._app(scope, receive_counted, send)


class MinuteLimit:
    """Limit of different items of a key in a minute, which begins with the first one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: dict[str, tuple[float, set[object]]] = {}

    def wait(self, key: str) -> float:
        """Return the seconds until the key may have further items, 0 if it may have one now."""
        began, items = self._of(key)
        return began + MINUTE - time.monotonic() if len(items) >= self._most else 0.0

    def add(self, key: str, item: object) -> None:
        """Count an item; one that was counted in this minute counts once."""
        self._of(key)[1].add(item)

    def _of(self, key: str) -> tuple[float, set[object]]:
        moment = time.monotonic()
        if key not in self._seen or self._seen[key][0] + MINUTE <= moment:
            if len(self._seen) > _MAX_KEYS:
                self._seen.clear()
            self._seen[key] = (moment, set())
        return self._seen[key]


def respond_later(problem: str, wait: float) -> JSONResponse:
    """Return the response that asks a client to wait some seconds."""
    seconds = str(math.ceil(wait))
    return respond(429, f"{problem}: wait {seconds} s.", code="rate_limit_exceeded", headers={"Retry-After": seconds})


class Quota:
    """Daily quota (UTC) of model tokens of each owner, which servers over one store share."""

    def __init__(self, engine: Engine, *, tokens_a_day: int | None) -> None:
        """Create the table if it is missing; blocks."""
        self._engine = engine
        self._a_day = tokens_a_day
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
