"""Events that cannot be stored as they are: the events of other runs are stored all the same."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sleuth.studio.server.runs.event_log import Event, EventLog
from sleuth.tools.settings import Settings
from sleuth.tools.storage.database import open_engine


@pytest.fixture
async def log(settings: Settings) -> AsyncIterator[EventLog]:
    settings.home.mkdir()
    engine = open_engine(f"sqlite:///{settings.home / 'runs.sqlite'}")
    yield EventLog(engine)
    engine.dispose()


async def stored(log: EventLog, thread: str) -> list[tuple[int, str]]:
    return [(event.id, event.key) for event in await log.after(thread, 0)]


async def flush(log: EventLog) -> None:
    """Store all queued events in one batch."""
    running = asyncio.create_task(log.run())
    await log.flush()
    running.cancel()
    await asyncio.wait([running])


async def test_event_log_skips_events_that_a_lost_commit_has_stored(log: EventLog) -> None:
    writer, repeated = await log.writer("one"), await log.writer("one")
    writer.append("step", {}, key="first")
    await flush(log)
    for key in ("first", "the end"):
        repeated.append("step", {}, key=key)
    await flush(log)
    assert await stored(log, "one") == [(1, "first"), (2, "the end")]


async def test_event_log_invalid_event_loses_no_other_threads_events(log: EventLog) -> None:
    other = await log.writer("other")
    log.put(Event(thread="one", id=1, name="step", key="first", data=None))  # type: ignore[arg-type]
    other.append("answer", {}, key="the end")
    await flush(log)
    assert await stored(log, "one") == []
    assert await stored(log, "other") == [(1, "the end")]
