"""The application in this process, over documents that are searched by words, with a model that knows the answer."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from serve_scene import Oracle, client_of, opening

from sleuth.studio.server.app import create_app
from sleuth.tools.settings import Settings

Serve = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def serving(tmp_path: Path, oracle: Oracle) -> Serve:
    """Starts a server over the same store; several one after the other are one server that was restarted."""

    @asynccontextmanager
    async def serve(*, keys: str | None = None, **others: Any) -> AsyncIterator[httpx.AsyncClient]:
        settings = Settings(home=tmp_path / "home", embedder="none", api_keys=keys, **others)
        app = create_app(settings, open_model=opening(oracle))
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(app.router.lifespan_context(app))
            yield await stack.enter_async_context(client_of(app))

    return serve


@pytest.fixture
async def client(serving: Serve) -> AsyncIterator[httpx.AsyncClient]:
    async with serving() as opened:
        yield opened
