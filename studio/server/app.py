"""The ASGI application of `sleuth serve`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from sleuth.studio.client.services import open_client
from sleuth.studio.mcp import mcp_app
from sleuth.studio.server import langgraph_api
from sleuth.studio.server.middleware.auth import Authentication, Keys
from sleuth.studio.server.middleware.limits import BodyLimit
from sleuth.studio.server.middleware.request_log import RequestLog
from sleuth.studio.server.routes import about, chat, documents, page, runs
from sleuth.studio.server.routes.mcp import ServerBackend
from sleuth.studio.server.schemas import errors
from sleuth.studio.server.state import Access, open_server_state, server_state_of
from sleuth.studio.server.telemetry.metrics import Telemetry
from sleuth.studio.tenants import ModelOpener
from sleuth.tools.errors import DISTRIBUTION
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings

DESCRIPTION = "Multi-hop question answering over your own documents: runs that survive a crash, and chat."


def create_app(
    settings: Settings, *, open_model: ModelOpener | None = None, embedder: Embedder | None = None
) -> FastAPI:
    """Return the application; its resources are opened by its lifespan.

    Args:
        settings: settings of the server; its API keys map requests to owners.
        open_model: replacement for the model client of `settings.model_url`.
        embedder: replacement for `settings.embedder`.

    Raises:
        UsageError: the API keys cannot be parsed.
        MissingExtra: SLEUTH_TRACING is `otel`, and the extra `otel` is not installed.
    """
    telemetry, keys = Telemetry(settings.tracing), Keys(settings)
    verbs, headers = ["GET", "POST"], ["Authorization"]
    cors = Middleware(CORSMiddleware, allow_origins=keys.origins, allow_methods=verbs, allow_headers=headers)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opening = open_server_state(
            settings, open_model=open_model or open_client, telemetry=telemetry, embedder=embedder
        )
        async with opening as server, mcp.router.lifespan_context(mcp):
            app.state.server = server
            yield

    app = FastAPI(
        title="sleuth",
        description=DESCRIPTION,
        version=version(DISTRIBUTION),
        lifespan=lifespan,
        responses=errors.ERRORS,
        docs_url=None,  # FastAPI's page loads its scripts from a CDN
        redoc_url=None,
        middleware=[
            Middleware(RequestLog, telemetry=telemetry),
            *([cors] if keys.origins else []),
            Middleware(Authentication, keys=keys, settings=settings, telemetry=telemetry),
            Middleware(BodyLimit),
        ],
    )
    errors.install(app, postgres=settings.database_url is not None)
    for router in (about.router, chat.router, runs.router, documents.router, langgraph_api.router):
        app.include_router(router)
    mcp = mcp_app(lambda owner: ServerBackend(Access(server=server_state_of(app), owner=str(owner))))
    app.router.routes.extend(mcp.routes)
    app.include_router(page.router)  # the last one: it has a route for every name
    return app
