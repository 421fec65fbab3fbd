"""Replies that are being written, from the server that runs a thread to the followers on others, by notifications.

A server with followers asks for the text of a thread; the one that runs it sends that for some seconds. Nothing is
stored, and a lost notification loses text only: the step has the result.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import count
from time import monotonic
from typing import Any
from uuid import uuid4

from sqlalchemy.engine import Engine

from sleuth.graphs.core.events import Delta, Reset
from sleuth.studio.server.runs.live_stream import StreamItem, Subscribers
from sleuth.studio.server.runs.notifications import DELTAS, LISTENERS, notify
from sleuth.tools.errors import StoreError
from sleuth.tools.storage import in_thread, transaction

LEASE = 15.0
"""Seconds for which a thread's text is sent after a request for it."""

PAUSE = 0.1
"""Seconds between two notifications of a thread: text that is written meanwhile is sent together."""

MAX_TEXT = 1_000
"""Characters of a notification; Postgres limits it to 8,000 bytes."""


class Forwarding:
    """Sends the text of runs here to other servers, and gives that of others to the subscribers here."""

    def __init__(self, engine: Engine, subscribers: Subscribers, is_here: Callable[[str], bool]) -> None:
        self._engine = engine
        self._subscribers = subscribers
        self._is_here = is_here
        self._server = uuid4().hex
        self._numbers = count()
        self._until: dict[str, float] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, threads: list[str], *, is_new: bool) -> None:
        """Ask for the text of threads; with `is_new` also for the text so far of their calls."""
        await self._send(LISTENERS, [{"thread": thread, "is_new": is_new} for thread in threads])

    def handle(self, channel: str, payload: str) -> None:
        """Handle a notification of either channel."""
        data = json.loads(payload)
        if channel == LISTENERS and self._is_here(data["thread"]):
            self._serve(data["thread"], is_new=data["is_new"])
        elif channel == DELTAS and not self._is_here(data["thread"]):
            item = data["item"]
            kind = Delta if "text" in item else Reset
            self._subscribers.forward(data["thread"], kind(**item), after=data["after"], source=data["server"])

    def close(self) -> None:
        """Send nothing more."""
        for task in self._tasks.values():
            task.cancel()

    def _serve(self, thread: str, *, is_new: bool) -> None:
        self._until[thread] = monotonic() + LEASE
        task = self._tasks.get(thread)
        if task and not task.done():
            if not is_new:
                return
            task.cancel()
        self._tasks[thread] = task = asyncio.create_task(self._forward(thread))
        task.add_done_callback(lambda done: self._forget(thread, done))

    def _forget(self, thread: str, done: "asyncio.Task[None]") -> None:
        if self._tasks.get(thread) is done:
            del self._tasks[thread], self._until[thread]

    async def _forward(self, thread: str) -> None:
        """Send the text of a thread until it ends or nobody asks for it any more."""
        with self._subscribers.subscribe(thread, persisted_only=False, is_reconnect=True, is_local=False) as subscriber:
            while self._is_here(thread) and monotonic() < self._until[thread]:
                subscriber.wakeup.clear()
                items = [{"thread": thread, "after": at, "item": part} for at, part in _parts(subscriber.take())]
                if items:
                    with suppress(StoreError):
                        await self._send(DELTAS, items)
                await asyncio.sleep(PAUSE)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LEASE):
                        await subscriber.wakeup.wait()

    @in_thread
    def _send(self, channel: str, payloads: list[dict[str, Any]]) -> None:
        with transaction(self._engine) as connection:
            for payload in payloads:  # numbered, because equal notifications of a transaction are sent once
                own = {"server": self._server, "number": next(self._numbers)}
                notify(connection, channel, json.dumps(payload | own, ensure_ascii=False))


def _parts(items: list[tuple[int, StreamItem]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield items as JSON objects that are short enough for a notification."""
    for after, item in items:
        if isinstance(item, Reset):
            yield after, asdict(item)
            continue
        for start in range(0, len(item.text), MAX_TEXT):
            yield after, asdict(replace(item, text=item.text[start : start + MAX_TEXT]))
