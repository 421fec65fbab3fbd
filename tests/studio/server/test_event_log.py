"""Events that cannot be kept as they are: what other runs tell is kept all the same."""

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
    made = EventLog(engine)
    yield made
    engine.dispose()


async def kept(log: EventLog, thread: str) -> list[tuple[int, str]]:
    return [(event.id, event.key) for event in await log.after(thread, 0)]


async def settled(log: EventLog) -> None:
    """All that was told until now is kept, in one batch."""
    running = asyncio.create_task(log.run())
    await log.flush()
    running.cancel()
    await asyncio.wait([running])


async def test_a_number_that_is_taken_costs_nobody_an_event(log: EventLog) -> None:
    one, other = await log.trail("one"), await log.trail("other")
    elsewhere = await log.trail("one")
    elsewhere.tell("step", {}, key="first")
    elsewhere.tell("step", {}, key="second")
    await settled(log)
    for trail in (one, other):
        trail.tell("step", {}, key="first")
        trail.tell("answer", {}, key="its end")
    await settled(log)
    assert await kept(log, "other") == [(1, "first"), (2, "its end")]
    assert await kept(log, "one") == [(1, "first"), (2, "second"), (3, "its end")]
    one.tell("step", {}, key="more")
    await settled(log)
    assert (await kept(log, "one"))[-1] == (4, "more")


async def test_an_event_that_no_store_takes_costs_others_none(log: EventLog) -> None:
    other = await log.trail("other")
    log.put(Event(thread="one", id=1, name="step", key="first", data=None))  # type: ignore[arg-type]
    other.tell("answer", {}, key="its end")
    await settled(log)
    assert await kept(log, "one") == []
    assert await kept(log, "other") == [(1, "its end")]
