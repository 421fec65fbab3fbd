"""What all tests share; being here it also makes the helpers beside it importable."""

from pathlib import Path

import pytest

from sleuth.tools.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A store of its own for each test."""
    return Settings(home=tmp_path / "home", embedder="hashing")
