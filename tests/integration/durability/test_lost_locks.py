"""Leases in Postgres whose connection is lost: taken again, or their runs ended where somebody else has them by now."""

import asyncio
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from four_hops import QUESTION, InProcess, Shelf
from postgres_fixture import PostgresServer
from sqlalchemy import Connection, Engine, text

from sleuth.graphs.persistence import thread_locks as module
from sleuth.graphs.persistence.fencing import check
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.persistence.thread_locks import AdvisoryLeases
from sleuth.graphs.runs.service import Runs, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.errors import ThreadBusy
from sleuth.tools.settings import Settings
from sleuth.tools.storage.database import catalogue_url, open_engine

pytestmark = [pytest.mark.integration, pytest.mark.postgres]

SOON, NEVER = 0.05, 3_600.0
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


async def is_free(leases: AdvisoryLeases, id: str) -> bool:
    try:
        async with leases.hold(id):
            return True
    except ThreadBusy:
        return False


async def test_held_names_leases_of_all_processes(engines: list[Engine]) -> None:
    here, elsewhere = map(AdvisoryLeases, engines)
    async with here.hold("monday"):
        for leases in (here, elsewhere):
            assert await leases.held(DAYS) == {"monday"}
    assert await elsewhere.held(DAYS) == set()


async def test_several_that_are_let_go_of_while_postgres_is_away(
    own_postgres: PostgresServer, engines: list[Engine]
) -> None:
    here, elsewhere = map(AdvisoryLeases, engines)
    async with AsyncExitStack() as held:
        for day in DAYS:
            await held.enter_async_context(here.hold(day))
        await asyncio.to_thread(own_postgres.stop)
    await asyncio.to_thread(own_postgres.start)
    async with here.hold("monday"), here.hold("tuesday"):
        assert not await is_free(elsewhere, "monday")
        assert await is_free(elsewhere, "wednesday")
    for leases in (here, elsewhere):
        assert [await is_free(leases, day) for day in DAYS] == [True] * 3


@pytest.mark.parametrize("back", [True, False], ids=["once-it-is-back", "while-it-is-away"])
async def test_what_is_held_on_is_taken_again(
    own_postgres: PostgresServer, engines: list[Engine], monkeypatch: pytest.MonkeyPatch, *, back: bool
) -> None:
    """Without a new process, and with the next that is let go of or taken."""
    monkeypatch.setattr(module, "BEAT", NEVER)
    here, elsewhere = map(AdvisoryLeases, engines)
    async with here.hold("monday"), here.hold("tuesday"):
        async with here.hold("wednesday"):
            await asyncio.to_thread(own_postgres.stop)
            if back:
                await asyncio.to_thread(own_postgres.start)
        if not back:
            await asyncio.to_thread(own_postgres.start)
            assert await is_free(here, "thursday")
        assert [await is_free(elsewhere, day) for day in DAYS] == [False, False, True]
        assert [await is_free(here, day) for day in DAYS] == [False, False, True]
    assert [await is_free(elsewhere, day) for day in DAYS] == [True] * 3


async def test_what_somebody_else_has_taken_meanwhile_is_theirs(
    own_postgres: PostgresServer, engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEAT", NEVER)
    here, elsewhere = map(AdvisoryLeases, engines)
    async with AsyncExitStack() as theirs:
        async with here.hold("monday"), here.hold("tuesday"):
            await restart(own_postgres)
            await theirs.enter_async_context(elsewhere.hold("monday"))
            assert await is_free(here, "wednesday")
            assert not await is_free(elsewhere, "tuesday")
            assert not await is_free(here, "monday")
        assert not await is_free(here, "monday"), "whoever has lost a lock cannot let go of another's"
        assert await is_free(elsewhere, "tuesday")
    async with here.hold("monday"):
        assert not await is_free(elsewhere, "monday")


async def test_a_lost_lock_that_another_had_meanwhile_is_not_retaken(
    own_postgres: PostgresServer, engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEAT", NEVER)
    here, elsewhere = map(AdvisoryLeases, engines)
    async with here.hold("monday"), here.hold("tuesday"):
        await restart(own_postgres)
        assert await is_free(elsewhere, "monday")
        assert await is_free(here, "wednesday")
        assert await is_free(elsewhere, "monday")
        assert not await is_free(here, "monday"), "its holder has not ended"
        assert not await is_free(elsewhere, "tuesday")
    assert await is_free(here, "monday")


async def test_a_lock_whose_holder_stopped_in_a_write_is_busy(
    engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITE_SECONDS", SOON)
    here, elsewhere = map(AdvisoryLeases, engines)
    async with here.hold("monday"), here.hold("tuesday"):
        with engines[1].begin() as other:
            await asyncio.to_thread(check, other, "monday", here.token("monday"))
            for pid in await asyncio.to_thread(holders, other):
                await asyncio.to_thread(other.scalar, text(f"SELECT pg_terminate_backend({pid}, 60000)"))
            assert not await is_free(elsewhere, "monday")
        assert await is_free(elsewhere, "monday")


async def test_a_lost_connection_is_noticed_while_nobody_asks_for_anything(
    engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEAT", SOON)
    here = AdvisoryLeases(engines[0])
    async with here.hold("monday"):
        with engines[1].connect() as other:
            (before,) = await asyncio.to_thread(holders, other)
            assert await asyncio.to_thread(other.scalar, text(f"SELECT pg_terminate_backend({before}, 60000)"))
            while not (now := await asyncio.to_thread(holders, other)):
                await asyncio.to_thread(other.scalar, text("SELECT pg_sleep(0.01)"))
        assert now != [before]


async def test_a_run_whose_lock_is_taken_by_another_ends(
    own_postgres: PostgresServer, engines: list[Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEAT", SOON)
    settings = Settings(home=tmp_path, database_url=own_postgres.url, owner=uuid.uuid4().hex)
    async with open_store(settings) as store:
        stuck = InProcess(hold_at=1)
        runs = Runs(store, Services(model=stuck, retriever=Shelf()))
        id = await runs.start(QUESTION, "par-rag")
        running = asyncio.create_task(last_answer(runs.run(id)))
        await stuck.holding.wait()
        async with taken_from_its_holder(engines):
            with pytest.raises(ThreadBusy, match=f"Thread {id} is being run by another process, which took it while"):
                await running
            assert running.cancelling() == 0
        again = Runs(store, Services(model=InProcess(), retriever=Shelf()))
        assert (await last_answer(again.run(id))).status == "answered"


async def test_a_session_that_the_server_still_believes_in_is_ended(
    own_postgres: PostgresServer, engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a network has forgotten a connection: what it held would be somebody else's."""
    monkeypatch.setattr(module, "BEAT", NEVER)
    with tempfile.TemporaryDirectory() as folder:
        between = Forgetful(own_postgres)
        async with between.standing(Path(folder)):
            engine = opened(f"postgresql://sleuth@/postgres?host={folder}")
            here = await asyncio.to_thread(AdvisoryLeases, engine)
            elsewhere = AdvisoryLeases(engines[1])
            async with here.hold("tuesday"):
                async with here.hold("monday"):
                    between.forget()
                    assert await is_free(here, "wednesday")
                    assert not await is_free(elsewhere, "monday")
                    between.forget()
                assert await is_free(elsewhere, "monday")
                assert not await is_free(elsewhere, "tuesday")
                between.forget()
            assert await is_free(elsewhere, "tuesday")
            await asyncio.to_thread(engine.dispose)


def holders(connection: Connection) -> list[int]:
    """The sessions that have an advisory lock."""
    return [*connection.scalars(text("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"))]


@asynccontextmanager
async def taken_from_its_holder(engines: list[Engine]) -> AsyncIterator[None]:
    """Waits for the only lock there is, and ends the session that has it: whoever waits is the next."""
    with engines[0].connect() as waiting, engines[1].connect() as other:
        locks = "SELECT pid, (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND "
        ((pid, key),) = await asyncio.to_thread(lambda: other.execute(text(f"{locks} granted")).all())
        locking = asyncio.create_task(asyncio.to_thread(waiting.execute, text(f"SELECT pg_advisory_lock({key})")))
        while not await asyncio.to_thread(lambda: other.execute(text(f"{locks} NOT granted")).all()):
            await asyncio.to_thread(other.scalar, text("SELECT pg_sleep(0.01)"))
        assert await asyncio.to_thread(other.scalar, text(f"SELECT pg_terminate_backend({pid}, 60000)"))
        await locking
        yield
        await asyncio.to_thread(waiting.invalidate)


class Forgetful:
    """Stands before a server; what it forgets ends for the clients, and the server is not told."""

    def __init__(self, server: PostgresServer) -> None:
        self._behind = server.url.partition("host=")[2]
        self._kept: list[asyncio.StreamWriter] = []
        self._clients: list[asyncio.StreamWriter] = []

    def forget(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()

    @asynccontextmanager
    async def standing(self, folder: Path) -> AsyncIterator[None]:
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
