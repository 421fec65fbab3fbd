"""Pruning in Postgres while other machines, each with its own SLEUTH_HOME, start or resume runs."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest
from four_hops import QUESTION, InProcess
from postgres_fixture import IN_POSTGRES
from stored_runs import assert_has_texts, finished, interrupt, open_runs, own_settings, services

from sleuth.graphs.runs.pruning import prune
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.errors import ThreadBusy, UnknownName
from sleuth.tools.settings import Settings

pytestmark = IN_POSTGRES

Deed = Callable[[], Awaitable[object]]


def meanwhile(runs: RunService, deed: Deed, *, after: str | None = None) -> RunService:
    """Return the runs of a prune: before it looks at its first thread, or after one, something happens once."""
    locks, left = copy(runs.store.locks), [deed]

    @asynccontextmanager
    async def hold(id: str) -> AsyncIterator[None]:
        if not after and left:
            await left.pop()()
        async with runs.store.locks.hold(id):
            yield
        if id == after and left:
            await left.pop()()

    vars(locks)["hold"] = hold
    return RunService(replace(runs.store, locks=locks), runs.services)


@pytest.fixture
def shared(tmp_path: Path, database_url: str) -> Settings:
    return own_settings(tmp_path, database_url)


@pytest.fixture
async def here(shared: Settings, tmp_path: Path) -> AsyncIterator[RunService]:
    """The machine that prunes; it has a run, so that there is something to look at."""
    async with open_runs(shared.model_copy(update={"home": tmp_path / "here"})) as runs:
        await finished(runs)
        yield runs


@pytest.fixture
async def there(shared: Settings, tmp_path: Path) -> AsyncIterator[RunService]:
    async with open_runs(shared.model_copy(update={"home": tmp_path / "there"})) as runs:
        yield runs


async def test_run_started_during_prune_keeps_its_texts(here: RunService, there: RunService) -> None:
    begun = []

    async def begin() -> None:
        begun.append((await finished(there, f"{QUESTION} {uuid.uuid4().hex}"))[0])

    await prune(meanwhile(here, begin), older_than=None, keep_last=1)
    await assert_has_texts(there, begun[0])


async def test_run_resumed_during_prune_keeps_its_texts(here: RunService, there: RunService) -> None:
    id = await there.start(RunRequest(question=f"{QUESTION} {uuid.uuid4().hex}", method="par-rag"))
    await interrupt(there, id, InProcess(hold_at=1))  # it has kept a prompt which no checkpoint names yet
    await prune(meanwhile(here, lambda: last_answer(there.run(id)), after=id), older_than=None, keep_last=1)
    await assert_has_texts(there, id)


async def test_prune_is_refused_while_another_machine_runs_a_thread(here: RunService, there: RunService) -> None:
    stuck, id = (
        InProcess(hold_at=1),
        await there.start(RunRequest(question=f"{QUESTION} {uuid.uuid4().hex}", method="par-rag")),
    )
    running = asyncio.create_task(last_answer(RunService(there.store, services(stuck)).run(id)))
    await stuck.holding.wait()
    with pytest.raises(ThreadBusy, match=f"Thread {id} is being run by another process"):
        await prune(here, older_than=None, keep_last=1)
    running.cancel()
    await asyncio.wait([running])


async def test_text_stored_again_during_prune_is_kept(here: RunService, there: RunService) -> None:
    again, lonely = await there.store.archive.keep([f"again {uuid.uuid4().hex}", f"lonely {uuid.uuid4().hex}"])
    (body,) = await there.store.archive.load([again])
    gone = await prune(meanwhile(here, lambda: there.store.archive.keep([body])), older_than=None, keep_last=1)
    assert gone.texts >= 1
    assert await here.store.archive.load([again]) == [body]
    with pytest.raises(UnknownName):
        await here.store.archive.load([lonely])
    assert (await prune(here, older_than=None, keep_last=1)).texts >= 1
    with pytest.raises(UnknownName):
        await here.store.archive.load([again])
