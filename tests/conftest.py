"""Fixtures of all tests. Its presence also makes the helpers in this folder importable."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from sleuth.tools.settings import Settings

# Processes share the cores: threads over small tensors wait for each other a hundred times as long as they work.
os.environ.setdefault("OMP_NUM_THREADS", "1")

gc.set_threshold(50_000)  # the suite makes many small objects and keeps few: rarer collections save seconds

# The same examples each time; other profiles look for new ones.
hypothesis_settings.register_profile("quick", max_examples=10, deadline=None, derandomize=True)
hypothesis_settings.register_profile("thorough", max_examples=500, deadline=None)
hypothesis_settings.register_profile("fuzz", max_examples=200_000, deadline=None, database=None)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_finish() -> None:
    """Exempt what was imported from garbage collection, which would walk through it again and again."""
    gc.freeze()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A store of its own for each test."""
    return Settings(home=tmp_path / "home", embedder="hashing")
