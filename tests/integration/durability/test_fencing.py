"""A process that has lost the lock of a thread in Postgres, and does not know it yet, writes nothing for the thread."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from four_hops import QUESTION, InProcess
from postgres_fixture import IN_POSTGRES
from sqlalchemy import text
from stored_runs import services

from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.persistence.tables import CHECKPOINT_TABLES
from sleuth.graphs.persistence.thread import StoredOptions
from sleuth.graphs.runs.pruning import remove_runs
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.studio.server.runs.event_log import EventLog
from sleuth.studio.server.runs.worker import RunQueue
from sleuth.tools.errors import ThreadBusy
from sleuth.tools.settings import Settings

pytestmark = IN_POSTGRES


@dataclass(frozen=True)
class Two:
    """Two processes over one database."""

    here: Store
    elsewhere: Store

    async def cut(self) -> None:
        """End the session that holds the locks of the first; nothing there notices."""
        here = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        holders = f"SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND {here}"
        ended = f"SELECT pg_terminate_backend(pid, 60000) FROM ({holders}) held"
        assert await asyncio.to_thread(self._all, ended) == [True]

    async def rows(self, thread: str) -> list[object]:
        """All that is stored of a thread's checkpoints."""
        tables = CHECKPOINT_TABLES["postgresql"]
        counts = [f"(SELECT count(*) FROM {table} WHERE thread_id = '{thread}')" for table in tables]
        return await asyncio.to_thread(self._all, f"SELECT unnest(ARRAY[{', '.join(counts)}])")

    def _all(self, query: str) -> list[object]:
        with self.elsewhere.engine.connect() as connection:
            return [*connection.scalars(text(query))]


@pytest.fixture
async def two(database_url: str, tmp_path: Path) -> AsyncIterator[Two]:
    settings = Settings(home=tmp_path, database_url=database_url)
    async with AsyncExitStack() as stack:
        yield Two(*[await stack.enter_async_context(open_store(settings)) for _ in range(2)])


async def test_run_that_another_process_finished_is_unchanged(two: Two) -> None:
    model = InProcess(hold_at=4)
    here, elsewhere = RunService(two.here, services(model)), RunService(two.elsewhere, services(InProcess()))
    id = await here.start(RunRequest(question=QUESTION, method="par-rag"))
    running = asyncio.create_task(last_answer(here.run(id)))
    await model.holding.wait()
    await two.cut()
    answer = await last_answer(elsewhere.run(id))
    thread, rows = await two.elsewhere.threads.get(id), await two.rows(id)
    model.free.set()
    with pytest.raises(ThreadBusy, match=f"Thread {id} is being run by another process, which took it while"):
        await running
    assert await two.elsewhere.threads.get(id) == thread
    assert await two.rows(id) == rows
    assert await elsewhere.answer(id) == answer


async def test_run_continues_if_nobody_takes_its_thread(two: Two) -> None:
    model = InProcess(hold_at=4)
    here = RunService(two.here, services(model))
    running = asyncio.create_task(
        last_answer(here.run(await here.start(RunRequest(question=QUESTION, method="par-rag"))))
    )
    await model.holding.wait()
    await two.cut()
    model.free.set()
    assert (await running).status == "answered"


async def test_run_that_another_process_removed_writes_nothing(two: Two) -> None:
    model = InProcess(hold_at=4)
    here, elsewhere = RunService(two.here, services(model)), RunService(two.elsewhere, services(InProcess()))
    id = await here.start(RunRequest(question=QUESTION, method="par-rag"))
    running = asyncio.create_task(last_answer(here.run(id)))
    await model.holding.wait()
    await two.cut()
    await remove_runs(elsewhere, id)
    again = await elsewhere.start(RunRequest(question="Who built the dam?", method="par-rag", thread=id))
    model.free.set()
    with pytest.raises(ThreadBusy):
        await running
    assert await two.rows(id) == [0, 0, 0]
    assert (await last_answer(elsewhere.run(again))).question == "Who built the dam?"


async def test_run_can_be_resumed_by_the_process_that_lost_it(two: Two) -> None:
    here = RunService(two.here, services(InProcess()))
    id = await here.start(RunRequest(question=QUESTION, method="par-rag"))
    async with two.here.locks.hold(id):
        await two.cut()
        async with two.elsewhere.locks.hold(id):
            pass
        with pytest.raises(ThreadBusy):
            await two.here.threads.set_state(id, "failed", at="2020-01-01")
        with pytest.raises(ThreadBusy):
            await two.here.threads.set_state(id, "queued", at="2020-01-01", options=StoredOptions())
    assert (await last_answer(here.run(id))).status == "answered"


async def test_events_and_jobs_of_a_lost_thread_are_not_stored(two: Two) -> None:
    log = await asyncio.to_thread(EventLog, two.here.engine)
    jobs = await asyncio.to_thread(RunQueue, two.here.engine)
    async with two.here.locks.hold("lost"), two.here.locks.hold("kept"):
        lost, kept = ((name, two.here.locks.token(name)) for name in ("lost", "kept"))
        for name, token in (lost, kept):
            await log.open(name)
            await jobs.add("local", name, token)
        await two.cut()
        async with two.elsewhere.locks.hold("lost"):
            pass
        with pytest.raises(ThreadBusy):
            await log.append(lost[0], "answer", {}, key="answer", token=lost[1])
        await log.append(kept[0], "answer", {}, key="answer", token=kept[1])
        assert [len(await log.after(name, 0)) for name, _ in (lost, kept)] == [0, 1]
        with pytest.raises(ThreadBusy):
            await jobs.remove(*lost)
        await jobs.remove(*kept)
        assert await jobs.pending() == [("lost", "local", True)]
