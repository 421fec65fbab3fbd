"""A process that may open no more files reports that, and does not advise to delete an index."""

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import text

from sleuth.tools.errors import StoreError
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.vectors.chroma_index import translate_errors
from sleuth.tools.storage.database import open_engine, sqlite_url, transaction


@contextmanager
def no_descriptors() -> Iterator[None]:
    """This process may open no file."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as opened:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[0], 4096), limits[1]))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        with suppress(OSError):
            while True:
                opened.enter_context(Path("/dev/null").open("rb"))
        yield


def read(place: Path) -> None:
    with transaction(open_engine(sqlite_url(place))) as connection:
        connection.execute(text("SELECT 1"))


def search(place: Path) -> None:
    with translate_errors(place):
        place.with_name("chroma").touch()


@pytest.mark.parametrize(
    "use", [KeywordIndex, GraphIndex, read, search], ids=["keywords", "graph", "database", "chroma"]
)
def test_lack_of_file_descriptors_is_reported(use: type[KeywordIndex], tmp_path: Path) -> None:
    place = tmp_path / "there"
    with suppress(StoreError, sqlite3.Error):
        use(place)
    with no_descriptors(), pytest.raises(StoreError, match="may open no more files: raise the limit") as raised:
        use(place)
    assert "delete" not in str(raised.value)
