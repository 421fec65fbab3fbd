"""Events are stored once; text deltas reach subscribers in order, and complete or withdrawn."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from sleuth.graphs.core.events import Delta, Reset, Step
from sleuth.graphs.persistence.tables import prepare_tables
from sleuth.studio.server.runs.event_log import EventLog
from sleuth.tools.settings import Settings
from sleuth.tools.storage.database import open_engine


@pytest.fixture
async def log(settings: Settings) -> AsyncIterator[EventLog]:
    settings.home.mkdir()
    engine = open_engine(f"sqlite:///{settings.home / 'runs.sqlite'}")
    prepare_tables(engine)
    yield EventLog(engine)
    engine.dispose()


def delta(text: str, call: str = "c", node: str = "draft") -> Delta:
    return Delta(thread="t", node=node, role="drafter", call=call, text=text)


def reset(call: str = "c") -> Reset:
    return Reset(thread="t", node="draft", role="drafter", call=call)


async def never() -> bool:
    return False


async def received(log: EventLog, after: int = 0, *, with_deltas: bool = True) -> list[tuple[int, str]]:
    """Return the numbers and names of the events that are there for a new subscriber."""
    found = log.follow("t", after, is_active=never, with_deltas=with_deltas)
    return [(event.id, event.name) async for event in found]


async def test_event_log_skips_events_that_a_lost_commit_has_stored(log: EventLog) -> None:
    assert await log.open("one") == 0
    assert await log.append("one", "step", {}, key="first")
    again = EventLog(log._engine)
    assert await again.open("one") == 1
    assert [await again.append("one", "step", {}, key=key) for key in ("first", "the end")] == [False, True]
    assert [(event.id, event.key) for event in await log.after("one", 0)] == [(1, "first"), (2, "the end")]
    assert await log.append("one", "step", {}, key="the end"), "the connection was lost after the commit"


async def test_event_follows_one_whose_storing_was_cancelled(log: EventLog) -> None:
    await log.open("t")
    with closing(sqlite3.connect(str(log._engine.url.database), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # the write waits for it
        storing = asyncio.create_task(log.append("t", "step", {}, key="first"))
        await asyncio.sleep(0.1)
        storing.cancel()
        await asyncio.sleep(0.1)
        other.execute("COMMIT")
    with pytest.raises(asyncio.CancelledError):
        await storing
    assert await log.append("t", "stopped", {}, key="stop")
    assert [(event.id, event.key) for event in await log.after("t", 0)] == [(1, "first"), (2, "stop")]


async def test_deltas_are_received_between_the_events_that_they_follow(log: EventLog) -> None:
    running = asyncio.Event()
    await log.open("t")

    async def is_active() -> bool:
        return running.is_set()

    running.set()
    following = log.follow("t", 0, is_active=is_active, with_deltas=True)
    await log.append("t", "step", {}, key="1")
    assert (await anext(following)).id == 1
    for item in (delta("a"), delta("x", "d"), delta("b"), reset(), delta("new")):
        log.publish_delta("t", item)
    log.finish_step("t", Step(thread="t", node="draft", state="finished"))
    await log.append("t", "step", {}, key="2")
    log.publish_delta("t", delta("next", "e"))
    running.clear()
    log.close("t")
    found = [(event.name, json.loads(event.data).get("text")) async for event in following]
    deltas = [("delta", "a"), ("delta", "x"), ("delta", "b"), ("reset", None), ("delta", "new")]
    assert found == [*deltas, ("step", None), ("delta", "next")]


async def test_late_subscriber_receives_the_text_so_far(log: EventLog) -> None:
    await log.open("t")
    for item in (reset("d"), delta("In "), delta("Varn")):
        log.publish_delta("t", item)
    assert [name for _, name in await received(log)] == ["delta"]
    assert await received(log, with_deltas=False) == []
    await log.append("t", "step", {}, key="1")
    for item in (reset("d"), delta(".")):
        log.publish_delta("t", item)
    assert [name for _, name in await received(log, 1)] == ["reset", "reset", "delta"]
    log.finish_step("t", Step(thread="t", node="draft", state="finished"))
    assert await received(log, 1) == []


async def test_subscriber_of_an_idle_thread_receives_the_events_of_another_server(log: EventLog) -> None:
    async def is_open() -> bool:
        return True

    following = asyncio.ensure_future(anext(log.follow("t", 0, is_active=is_open, ends=False)))
    await log.look(active=())
    other = EventLog(log._engine)
    await other.open("t")
    await other.append("t", "step", {}, key="1")
    assert not following.done()
    await log.look(active=())
    assert (await following).id == 1


async def test_subscriber_is_released_when_another_server_ends_the_run(log: EventLog) -> None:
    jobs = {"t"}

    async def is_active() -> bool:
        return "t" in jobs

    following = asyncio.ensure_future(anext(log.follow("t", 0, is_active=is_active), None))
    await log.look(active=jobs)
    assert not following.done()
    jobs.clear()
    await log.look(active=jobs)
    assert await following is None
