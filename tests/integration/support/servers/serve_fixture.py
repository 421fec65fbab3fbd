"""The application in this process, over documents that are searched by words, with a model that knows the answer."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_server import started
from postgres_fixture import database
from serve_scene import Oracle, client_of, opening

from sleuth.studio.server.app import create_app
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.settings import Settings

Serve = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]

BOTH_STORES = pytest.mark.parametrize(
    "store", ["files", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
"""Run a test once with files and once with an empty database in Postgres."""


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Yield the URL of the server's database, or None for files; `BOTH_STORES` selects it."""
    if getattr(request, "param", "files") == "files":
        yield None
        return
    with database(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.fixture
def serving(tmp_path: Path, oracle: Oracle, store: str | None) -> Serve:
    """Return a function that starts a server; servers started one after the other are one that was restarted."""

    @asynccontextmanager
    async def serve(
        *, keys: str | None = None, embedder: Embedder | None = None, **others: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        own = {"home": tmp_path / "home", "embedder": "hashing" if embedder else "none", "database_url": store}
        app = create_app(Settings(api_keys=keys, **{**own, **others}), open_model=opening(oracle), embedder=embedder)
        async with started(app), client_of(app) as opened:
            yield opened

    return serve


@pytest.fixture
async def client(serving: Serve) -> AsyncIterator[httpx.AsyncClient]:
    async with serving() as opened:
        yield opened
