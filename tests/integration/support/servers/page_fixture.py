"""The page in Chromium, served by an application in this process."""

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from asgi_server import serving, started
from filelock import FileLock
from page_use import Teller
from playwright.async_api import Browser, Page, async_playwright, expect
from process import program
from serve_scene import opening
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from sleuth.studio.server.app import create_app
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.settings import Settings

PATIENCE = 120_000
"""Milliseconds that anything may take; a busy machine is slow."""

SOURCES = Path(__file__).parents[4] / "studio" / "web"

Site = Callable[..., Awaitable[str]]
"""Starts a server over the test's store, with keys if they are given; its URL."""


@pytest.fixture
def teller() -> Teller:
    return Teller()


MODELS = Starlette(routes=[Route("/v1/models", lambda _request: JSONResponse({"data": []}))])
"""What readiness asks of a model server."""


@pytest.fixture
async def site(tmp_path: Path, teller: Teller) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:

        async def start(keys: str | None = None, embedder: Embedder | None = None, **more: Any) -> str:
            models = await stack.enter_async_context(serving(MODELS))
            more = {"model_url": f"{models}/v1", **more}
            settings = Settings(home=tmp_path / "home", embedder="none", api_keys=keys, **more)
            app = create_app(settings, open_model=opening(teller), embedder=embedder)
            await stack.enter_async_context(started(app))
            return await stack.enter_async_context(serving(app))

        yield start


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    reason = "Chromium is not installed: apt-get install chromium"
    chromium = program(reason, "chromium", "chromium-browser", "google-chrome")
    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        # Containers give no user name spaces to its sandbox, and little shared memory.
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = await playwright.chromium.launch(executable_path=chromium, args=flags, timeout=PATIENCE)
        yield browser
        await browser.close()


@pytest.fixture
async def page(chromium: Browser) -> AsyncIterator[Page]:
    """A tab; whatever it complains about fails the test."""
    context = await chromium.new_context(viewport={"width": 1120, "height": 740}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    tab = await context.new_page()
    faults: list[str] = []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    yield tab
    await context.close()
    assert faults == []


@pytest.fixture(scope="session")
def axe(npm: str) -> str:
    """The script of axe-core, of the version in package-lock.json."""
    script = SOURCES / "node_modules" / "axe-core" / "axe.min.js"
    with installing():
        if not script.is_file():
            subprocess.run([npm, "ci", "--silent"], cwd=SOURCES, check=True)
        return script.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def npm() -> str:
    """The program; skips where it is absent."""
    return program("npm is not installed: Node 20.19 or newer has it", "npm")


def installing() -> FileLock:
    """Exclude other tests that install the page's packages or read them."""
    (folder := SOURCES.parents[1] / ".cache").mkdir(exist_ok=True)
    return FileLock(folder / "page-packages.lock")
