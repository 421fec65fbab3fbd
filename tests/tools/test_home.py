"""A home that several collections and the runs share."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from sleuth.graphs.persistence.store import open_store
from sleuth.tools.collection import Collection
from sleuth.tools.errors import StoreBusy, StoreError
from sleuth.tools.home import RESTORING, open_home
from sleuth.tools.settings import Settings


async def engines(settings: Settings) -> list[Engine]:
    """Return the engines of two owners' documents, and that of the runs."""
    other = settings.model_copy(update={"owner": "other"})
    async with (
        open_home(settings, "search") as home,
        await Collection.open(settings, home=home) as one,
        await Collection.open(other, home=home) as two,
        open_store(settings, home) as store,
    ):
        assert await one.count() == await two.count() == (0, 0)
        return [one.catalogue.engine, two.catalogue.engine, store.engine]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", embedder="none", wait=0.0)


async def test_owners_share_the_engine_of_the_documents(settings: Settings) -> None:
    one, two, runs = await engines(settings)
    assert one is two
    assert one is not runs


async def test_half_restored_home_is_not_opened(settings: Settings) -> None:
    settings.home.mkdir()
    (settings.home / RESTORING).touch()
    with pytest.raises(StoreError, match=r"A restore of .*home is in progress or was interrupted"):
        await Collection.open(settings)
    with pytest.raises(StoreError, match=r"A restore of .*home is in progress or was interrupted"):
        async with open_store(settings):
            pytest.fail("it was opened")


async def test_home_in_use_is_not_opened(settings: Settings) -> None:
    async with open_home(settings, "alone", command="sleuth restore"):
        with pytest.raises(StoreBusy, match="in use by `sleuth restore`"):
            async with open_home(settings, "search"):
                pytest.fail("it was opened")
    async with open_home(settings, None):
        assert not settings.home.joinpath("catalogue.db").exists()
