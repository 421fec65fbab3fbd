"""The ASGI application of `sleuth serve`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware import Middleware

from sleuth.studio.client import gateway_class
from sleuth.studio.mcp.server import alive, mcp_app
from sleuth.studio.server.middleware.auth import Guard, parse_keys
from sleuth.studio.server.middleware.body_limit import Bounds
from sleuth.studio.server.middleware.rate_limit import RateLimit
from sleuth.studio.server.middleware.request_log import Observed
from sleuth.studio.server.routes import about, chat, documents, page, runs
from sleuth.studio.server.routes.mcp import Served
from sleuth.studio.server.schemas import errors as faults
from sleuth.studio.server.state import House, open_house
from sleuth.studio.server.telemetry import Telemetry
from sleuth.studio.server.tenants import OpenModel
from sleuth.tools.optional_imports import DISTRIBUTION
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings

DESCRIPTION = "Multi-hop question answering over your own documents: runs that survive whatever happens, and chat."


def create_app(settings: Settings, *, open_model: OpenModel | None = None, embedder: Embedder | None = None) -> FastAPI:
    """The application; what it needs is opened when it starts.

    Args:
        settings: those of the server; keys say whose requests are whose.
        open_model: another way to a model than the gateway to `settings.model_url`.
        embedder: another one than `settings.embedder`.

    Raises:
        UsageError: the keys cannot be read.
    """

    telemetry = Telemetry()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opener = open_model or (await asyncio.to_thread(gateway_class)).open
        opening = open_house(settings, open_model=opener, telemetry=telemetry, embedder=embedder)
        async with opening as house, alive(mcp):
            app.state.house = house
            yield

    app = FastAPI(
        title="sleuth",
        description=DESCRIPTION,
        version=version(DISTRIBUTION),
        lifespan=lifespan,
        responses=faults.ERRORS,
        docs_url=None,  # its page would be loaded from a CDN
        redoc_url=None,
        middleware=[
            Middleware(Observed, telemetry=telemetry),
            Middleware(Guard, keys=parse_keys(settings), owner=settings.owner),
            Middleware(RateLimit, a_minute=settings.requests_a_minute),
            Middleware(Bounds),
        ],
    )
    faults.install(app, postgres=settings.database_url is not None)
    for topic in (about, chat, runs, documents, page):
        app.include_router(topic.router)
    mcp = mcp_app(lambda owner: Served(house=house_of(app), owner=str(owner)))
    app.router.routes.extend(mcp.routes)
    return app


def house_of(app: FastAPI) -> House:
    """What an application that has started works with."""
    house = app.state.house
    assert isinstance(house, House)
    return house
