"""Fixtures of the tests of tools."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import open_engine


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    """An empty catalogue in `catalogue.db`."""
    opened = Catalogue(open_engine(f"sqlite:///{tmp_path}/catalogue.db"), owner="local", collection="default")
    yield opened
    opened.close()
