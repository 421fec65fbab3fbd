from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from entries import entry

from sleuth.graphs.persistence.store import open_store
from sleuth.tools.collection import Collection
from sleuth.tools.home import open_home
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue, Stored
from sleuth.tools.storage.database import catalogue_url, open_engine

pytestmark = pytest.mark.postgres


@pytest.fixture
def catalogue(postgres_url: str, settings: Settings) -> Iterator[Catalogue]:
    url = catalogue_url(settings.home, postgres_url)
    opened = Catalogue(open_engine(url), owner="local", collection=uuid4().hex)
    yield opened
    opened.close()


def test_postgres_catalogue_behaves_like_sqlite(catalogue: Catalogue) -> None:
    assert catalogue.put_documents([entry("a", "stays", "old"), entry("b", "x")]) == Stored(added=2, passages=3)
    head = catalogue.head()
    assert catalogue.put_documents([entry("a", "stays", "new"), entry("b", "x")]) == Stored(
        updated=1, unchanged=1, passages=1
    )
    assert [(change.kind, len(change.passage_ids)) for change in catalogue.changes(head)] == [("delete", 1), ("add", 1)]
    assert [listed.id for listed in catalogue.list_documents(limit=1, after="a")] == ["b"]
    assert catalogue.delete_documents(["a"]) == 1
    assert catalogue.passage_ids() == {entry("b", "x").passages[0].id}
    assert catalogue.embedder() is None
    for name in ("one", "two"):
        catalogue.set_embedder(name)
        assert catalogue.embedder() == name


def test_reader_with_parallel_writers_misses_no_change(catalogue: Catalogue) -> None:
    """Numbers are drawn before a transaction ends: without turns a later one could show before an earlier one."""

    def write(writer: int) -> None:
        for turn in range(10):
            catalogue.put_documents([entry(f"{writer}-{turn}", f"text {writer} {turn}")])

    seen: set[str] = set()
    seq = 0
    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        while not all(writer.done() for writer in writers) or seq < catalogue.head():
            for change in catalogue.changes(seq):
                seen |= set(change.passage_ids)
                seq = change.seq
    assert seen == catalogue.passage_ids()
    assert len(seen) == 40


async def test_documents_and_runs_share_an_engine(postgres_url: str, settings: Settings) -> None:
    on_server = settings.model_copy(update={"database_url": postgres_url, "embedder": "none"})
    async with open_home(on_server, "search") as home, await Collection.open(on_server, home=home) as collection:
        async with open_store(on_server, home) as store, store.locks.hold("a run"):
            assert store.engine is collection.catalogue.engine
            assert await collection.count() == (0, 0)
        assert await collection.count() == (0, 0)
