"""Generated valid and invalid requests: none causes an internal error."""

import asyncio
import importlib.util
import sys
from pathlib import Path

import httpx
import pytest
from asgi_server import serving as listening
from postgres_fixture import IN_POSTGRES
from process import missing
from serve_scene import ANNA, KEYS, Oracle, begin, opening, told, upload

from sleuth.studio.server.app import create_app
from sleuth.tools.settings import Settings

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EXAMPLES = 8
"""Per route and phase."""


@pytest.fixture
def schemathesis() -> None:
    """Skip the test without schemathesis, or fail if skipping is not allowed."""
    if importlib.util.find_spec("schemathesis") is None:
        missing("schemathesis is not installed")


@pytest.mark.nightly
@IN_POSTGRES  # it refuses more than SQLite
@pytest.mark.usefixtures("schemathesis")
async def test_no_request_causes_an_internal_error(tmp_path: Path, database_url: str | None) -> None:
    settings = Settings(home=tmp_path, embedder="none", api_keys=KEYS, database_url=database_url)
    app = create_app(settings, open_model=opening(Oracle()))
    async with app.router.lifespan_context(app), listening(app) as url:
        async with httpx.AsyncClient(base_url=url, headers=ANNA, timeout=60, trust_env=False) as client:
            await upload(client)
            await told(client, await begin(client))
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--no-color"]
        command += ["--checks", CHECKS, "--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES), "--seed", "1"]
        command += ["--header", f"Authorization: {ANNA['Authorization']}", "--request-timeout", "60"]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        told_by, _ = await process.communicate()
    assert process.returncode == 0, told_by.decode()[-8000:]
