"""Followers of uploads: whenever they subscribe, they receive the end."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import create_engine

from sleuth.studio.server.ingestion.uploads import Ingest, Uploads
from sleuth.studio.server.ingestion.worker import IngestionWorker
from sleuth.studio.server.telemetry.metrics import Telemetry

OWNER = "anna"


def new_worker(home: Path) -> IngestionWorker:
    """Return a worker that never ingests."""
    unused = cast(Any, SimpleNamespace())
    uploads = Uploads(create_engine(f"sqlite:///{home / 'serve.sqlite'}"), home / "uploads")
    return IngestionWorker(unused, unused, uploads, Telemetry())


@pytest.fixture
def worker(tmp_path: Path) -> IngestionWorker:
    return new_worker(tmp_path)


@pytest.fixture
async def ingest(worker: IngestionWorker) -> Ingest:
    return await worker.add(OWNER, {"a.md": io.BytesIO(b"A lamp.")})


async def test_follow_of_a_recovered_upload_starts_before_its_turn(tmp_path: Path, ingest: Ingest) -> None:
    worker = new_worker(tmp_path)
    await worker.recover()
    following = worker.follow(await worker.get(OWNER, ingest.id))
    assert (await anext(following)).status == "waiting"
    await worker.stop(OWNER, ingest.id)
    assert (await anext(following)).status == "stopping"


async def test_follow_receives_an_end_that_occurs_during_an_update(worker: IngestionWorker, ingest: Ingest) -> None:
    following = worker.follow(ingest)
    assert (await anext(following)).status == "waiting"
    await worker.stop(OWNER, ingest.id)
    assert [each.status async for each in following] == ["stopped"]


async def test_follow_of_an_ended_upload_yields_its_end(worker: IngestionWorker, ingest: Ingest) -> None:
    await worker.stop(OWNER, ingest.id)
    assert [each.status async for each in worker.follow(ingest)] == ["stopped"]
