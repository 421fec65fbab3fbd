"""Runs in a store of their own: in Postgres with an owner of their own."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from four_hops import QUESTION, InProcess, Shelf

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import export_run, find_hashes
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.settings import Settings


def own_settings(folder: Path, database_url: str | None) -> Settings:
    return Settings(home=folder / "home", database_url=database_url, owner=uuid.uuid4().hex)


def services(model: InProcess | None = None) -> Services:
    return Services(model=model or InProcess(), retriever=Shelf())


@asynccontextmanager
async def open_runs(settings: Settings) -> AsyncIterator[RunService]:
    async with open_store(settings) as store:
        yield RunService(store, services())


async def finished(runs: RunService, question: str = QUESTION) -> tuple[str, Answer]:
    id = await runs.start(RunRequest(question=question, method="par-rag"))
    return id, await last_answer(runs.run(id))


async def interrupt(runs: RunService, id: str, model: InProcess, pause: float = 0.0) -> None:
    """Cancel a run when its model holds a call, after a pause in which other replies are committed."""
    running = asyncio.create_task(last_answer(RunService(runs.store, services(model)).run(id)))
    await model.holding.wait()
    await asyncio.sleep(pause)
    running.cancel()
    await asyncio.wait([running])


async def assert_has_texts(runs: RunService, id: str) -> None:
    """The texts of all passages and prompts in the state of a run are stored."""
    exported = await export_run(runs, id)
    hashes = find_hashes(exported["state"])
    assert hashes
    assert hashes <= exported["texts"].keys()
