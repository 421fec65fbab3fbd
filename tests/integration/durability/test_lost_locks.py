"""Thread locks in Postgres whose connection is lost: others can take the threads."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from postgres_fixture import PostgresServer
from sqlalchemy import Engine

from sleuth.graphs.persistence.thread_locks import PostgresThreadLocks
from sleuth.tools.errors import ThreadBusy
from sleuth.tools.storage.database import catalogue_url, open_engine

pytestmark = pytest.mark.postgres

DAYS = ("monday", "tuesday", "wednesday")


@pytest.fixture
def engines(own_postgres: PostgresServer) -> Iterator[list[Engine]]:
    """Two, each as of a process of its own."""
    made = [open_engine(catalogue_url(Path(), own_postgres.url)) for _ in range(2)]
    yield made
    for each in made:
        each.dispose()


async def is_free(locks: PostgresThreadLocks, id: str) -> bool:
    try:
        async with locks.hold(id):
            return True
    except ThreadBusy:
        return False


async def test_held_names_locks_of_all_processes(engines: list[Engine]) -> None:
    here, elsewhere = map(PostgresThreadLocks, engines)
    async with here.hold("monday"):
        for locks in (here, elsewhere):
            assert await locks.held(DAYS) == {"monday"}
    assert await elsewhere.held(DAYS) == set()


async def test_locks_released_while_postgres_is_away_are_free_afterwards(
    own_postgres: PostgresServer, engines: list[Engine]
) -> None:
    here, elsewhere = map(PostgresThreadLocks, engines)
    async with AsyncExitStack() as held:
        for day in DAYS:
            await held.enter_async_context(here.hold(day))
        await asyncio.to_thread(own_postgres.stop)
    await asyncio.to_thread(own_postgres.start)
    async with here.hold("monday"), here.hold("tuesday"):
        assert not await is_free(elsewhere, "monday")
        assert await is_free(elsewhere, "wednesday")
    for locks in (here, elsewhere):
        assert [await is_free(locks, day) for day in DAYS] == [True] * 3


async def test_restart_frees_locks_for_other_processes(own_postgres: PostgresServer, engines: list[Engine]) -> None:
    here, elsewhere = map(PostgresThreadLocks, engines)
    async with AsyncExitStack() as theirs:
        async with here.hold("monday"), here.hold("tuesday"):
            await asyncio.to_thread(own_postgres.stop)
            await asyncio.to_thread(own_postgres.start)
            await theirs.enter_async_context(elsewhere.hold("monday"))
            assert await is_free(here, "wednesday")
            assert not await is_free(here, "monday"), "its holder here has not ended"
            assert await here.held(DAYS) == {"monday", "tuesday"}
        assert not await is_free(here, "monday"), "a process that has lost a lock cannot release another's"
        assert await is_free(here, "tuesday")
    async with here.hold("monday"):
        assert not await is_free(elsewhere, "monday")
