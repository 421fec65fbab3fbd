"""Uploads and those who follow them, whenever these come: nobody waits for an end that has been."""

import asyncio
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from sqlalchemy import create_engine

from sleuth.studio.server.home_lock import Door
from sleuth.studio.server.ingestion.uploads import Ingest, Uploads
from sleuth.studio.server.ingestion.worker import Ingests
from sleuth.studio.server.tenants import Tenants
from sleuth.tools.collection.collection import Collection
from sleuth.tools.settings import Settings

OWNER = "anna"


class Shelf:
    """The libraries of all owners, none of which is ever opened."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home)
        self.asked = asyncio.Event()

    def settings_of(self, owner: str) -> Settings:
        return self.settings

    async def library(self, owner: str) -> Collection:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody opens it")


def serving(home: Path, shelf: Shelf | None = None) -> Ingests:
    uploads = Uploads(create_engine(f"sqlite:///{home / 'serve.sqlite'}"), home / "uploads")
    return Ingests(cast(Tenants, shelf), cast(Door, SimpleNamespace()), uploads)


async def uploaded(home: Path) -> tuple[Ingests, Shelf, Ingest]:
    """A file that waits for its turn."""
    shelf = Shelf(home)
    ingests = serving(home, shelf)
    return ingests, shelf, await ingests.add(OWNER, {"a.md": io.BytesIO(b"A lamp.")})


async def test_an_upload_is_heard_to_its_end(tmp_path: Path) -> None:
    ingests, shelf, ingest = await uploaded(tmp_path)
    heard: list[str] = []

    async def listen() -> None:
        heard.extend([each.status async for each in ingests.follow(ingest)])

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    running: asyncio.Task[Any] = asyncio.create_task(ingests.run())
    await shelf.asked.wait()
    await ingests.stop(OWNER, ingest.id)
    await asyncio.wait_for(listening, 10)
    running.cancel()
    assert heard == ["waiting", "stopped"]


async def test_what_the_last_server_left_can_be_followed_before_its_turn(tmp_path: Path) -> None:
    _, _, ingest = await uploaded(tmp_path)
    ingests = serving(tmp_path)
    await ingests.pick_up()
    following = ingests.follow(await ingests.get(OWNER, ingest.id))
    assert (await anext(following)).status == "waiting"
    await ingests.stop(OWNER, ingest.id)
    assert (await anext(following)).status == "stopping"


async def test_an_end_that_comes_while_the_state_before_is_told_is_told_too(tmp_path: Path) -> None:
    ingests, _, ingest = await uploaded(tmp_path)
    following = ingests.follow(ingest)
    assert (await anext(following)).status == "waiting"
    await ingests.stop(OWNER, ingest.id)
    assert (await anext(following)).status == "stopped"


async def test_an_end_before_anybody_follows_is_told(tmp_path: Path) -> None:
    ingests, _, ingest = await uploaded(tmp_path)
    await ingests.stop(OWNER, ingest.id)
    assert [each.status async for each in ingests.follow(ingest)] == ["stopped"]
