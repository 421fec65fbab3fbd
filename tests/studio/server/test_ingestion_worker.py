"""Followers of uploads: whenever they subscribe, they receive the end."""

import asyncio
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from sqlalchemy import create_engine

from sleuth.studio.server.ingestion.uploads import Ingest, Uploads
from sleuth.studio.server.ingestion.worker import IngestionWorker
from sleuth.studio.server.locks import SharedHomeLock
from sleuth.studio.server.tenants import Tenants
from sleuth.tools.collection.collection import Collection
from sleuth.tools.settings import Settings

OWNER = "anna"


class BlockedTenants:
    """Tenants whose libraries are never opened."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home)
        self.requested = asyncio.Event()

    def settings_of(self, owner: str) -> Settings:
        return self.settings

    async def library(self, owner: str) -> Collection:
        self.requested.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def new_worker(home: Path, tenants: BlockedTenants | None = None) -> IngestionWorker:
    uploads = Uploads(create_engine(f"sqlite:///{home / 'serve.sqlite'}"), home / "uploads")
    return IngestionWorker(cast(Tenants, tenants), cast(SharedHomeLock, SimpleNamespace()), uploads)


async def upload(home: Path) -> tuple[IngestionWorker, BlockedTenants, Ingest]:
    """Return a worker with one waiting upload."""
    tenants = BlockedTenants(home)
    worker = new_worker(home, tenants)
    return worker, tenants, await worker.add(OWNER, {"a.md": io.BytesIO(b"A lamp.")})


async def test_follow_streams_an_upload_to_its_end(tmp_path: Path) -> None:
    worker, tenants, ingest = await upload(tmp_path)
    statuses: list[str] = []

    async def listen() -> None:
        statuses.extend([each.status async for each in worker.follow(ingest)])

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    running: asyncio.Task[Any] = asyncio.create_task(worker.run())
    await tenants.requested.wait()
    await worker.stop(OWNER, ingest.id)
    await asyncio.wait_for(listening, 10)
    running.cancel()
    assert statuses == ["waiting", "stopped"]


async def test_follow_of_a_recovered_upload_starts_before_its_turn(tmp_path: Path) -> None:
    _, _, ingest = await upload(tmp_path)
    worker = new_worker(tmp_path)
    await worker.recover()
    following = worker.follow(await worker.get(OWNER, ingest.id))
    assert (await anext(following)).status == "waiting"
    await worker.stop(OWNER, ingest.id)
    assert (await anext(following)).status == "stopping"


async def test_follow_receives_an_end_that_occurs_during_an_update(tmp_path: Path) -> None:
    worker, _, ingest = await upload(tmp_path)
    following = worker.follow(ingest)
    assert (await anext(following)).status == "waiting"
    await worker.stop(OWNER, ingest.id)
    assert (await anext(following)).status == "stopped"


async def test_follow_of_an_ended_upload_yields_its_end(tmp_path: Path) -> None:
    worker, _, ingest = await upload(tmp_path)
    await worker.stop(OWNER, ingest.id)
    assert [each.status async for each in worker.follow(ingest)] == ["stopped"]
