"""Thread locks in Postgres whose connection is lost: others can take the threads."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from postgres_fixture import PostgresServer
from sqlalchemy import Engine, text

from sleuth.graphs.persistence import thread_locks as module
from sleuth.graphs.persistence.thread_locks import PostgresThreadLocks, check_token
from sleuth.tools.errors import ThreadBusy
from sleuth.tools.storage.database import catalogue_url, open_engine

pytestmark = [pytest.mark.integration, pytest.mark.postgres]

HOLDERS = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
DAYS = ("monday", "tuesday", "wednesday")


@pytest.fixture
def engines(own_postgres: PostgresServer) -> Iterator[list[Engine]]:
    """Two, each as of a process of its own."""
    made = [opened(own_postgres.url) for _ in range(2)]
    yield made
    for each in made:
        each.dispose()


def opened(url: str) -> Engine:
    return open_engine(catalogue_url(Path(), url))


async def restart(server: PostgresServer) -> None:
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start)


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
            await restart(own_postgres)
            await theirs.enter_async_context(elsewhere.hold("monday"))
            assert await is_free(here, "wednesday")
            assert not await is_free(here, "monday"), "its holder here has not ended"
            assert await here.held(DAYS) == {"monday", "tuesday"}
        assert not await is_free(here, "monday"), "a process that has lost a lock cannot release another's"
        assert await is_free(here, "tuesday")
    async with here.hold("monday"):
        assert not await is_free(elsewhere, "monday")


async def test_lock_whose_holder_stopped_in_a_write_is_busy(
    engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITE_SECONDS", 0.05)
    here, elsewhere = map(PostgresThreadLocks, engines)
    async with here.hold("monday"):
        with engines[1].connect() as other:
            pids = await asyncio.to_thread(lambda: [*other.scalars(text(HOLDERS))])
        async with elsewhere.hold("tuesday"):
            with engines[1].begin() as other:
                await asyncio.to_thread(check_token, other, "monday", here.token("monday"))
                for pid in pids:
                    await asyncio.to_thread(other.scalar, text(f"SELECT pg_terminate_backend({pid}, 60000)"))
                assert not await is_free(elsewhere, "monday")
            assert not await is_free(here, "tuesday"), "the other locks are kept"
            assert await is_free(elsewhere, "monday")


async def test_session_that_the_server_still_keeps_is_ended(
    own_postgres: PostgresServer, engines: list[Engine]
) -> None:
    """A network that drops a connection without closing it would otherwise keep the locks held."""
    with tempfile.TemporaryDirectory() as folder:
        between = Forgetful(own_postgres)
        async with between.listen(Path(folder)):
            engine = opened(f"postgresql://sleuth@/postgres?host={folder}")
            here = await asyncio.to_thread(PostgresThreadLocks, engine)
            elsewhere = PostgresThreadLocks(engines[1])
            async with here.hold("monday"):
                between.forget()
                assert not await is_free(elsewhere, "monday"), "the server does not know yet"
                assert await is_free(here, "tuesday")
                assert await is_free(elsewhere, "monday")
            assert await is_free(here, "monday")
            await asyncio.to_thread(engine.dispose)


class Forgetful:
    """A proxy of a server. It ends connections of clients and keeps those to the server."""

    def __init__(self, server: PostgresServer) -> None:
        self._behind = server.url.partition("host=")[2]
        self._kept: list[asyncio.StreamWriter] = []
        self._clients: list[asyncio.StreamWriter] = []

    def forget(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()

    @asynccontextmanager
    async def listen(self, folder: Path) -> AsyncIterator[None]:
        async with await asyncio.start_unix_server(self._serve, folder / ".s.PGSQL.5432"):
            yield
        for each in [*self._clients, *self._kept]:
            each.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replies, server = await asyncio.open_unix_connection(f"{self._behind}/.s.PGSQL.5432")
        self._clients.append(writer)
        self._kept.append(server)
        await asyncio.gather(self._carry(reader, server), self._carry(replies, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
