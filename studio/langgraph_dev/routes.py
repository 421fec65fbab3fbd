"""The same routes inside `langgraph dev` (`http.app` in langgraph.json), where the server has routes of its own.

Whatever goes around our routes goes around ours alone: who may use LangGraph's, and what its errors look like, stays
its own affair. The page is at /app; what would meet a route of LangGraph's is left out.
"""

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from sleuth.studio.server.app import create_app
from sleuth.studio.server.routes import page
from sleuth.studio.server.schemas import errors as faults
from sleuth.tools.settings import Settings

TAKEN = {"/metrics", "/mcp", "/openapi.json", "/", "/{name}", "/assets/{name}"}
"""Paths that are LangGraph's here, or might become its; the page's are moved."""


def beside_langgraph(settings: Settings) -> FastAPI:
    """The application with our routes under /v1, /healthz and /app."""
    whole = create_app(settings)
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, lifespan=whole.router.lifespan_context)
    app.include_router(page.router, prefix="/app")
    app.add_route("/app", _to_the_page)
    ours = [route for route in whole.routes if isinstance(route, Route) and route.path not in TAKEN]
    app.router.routes.extend(ours)
    for route in app.router.routes:
        assert isinstance(route, Route | APIRoute)
        route.app = _guarded(route.app, whole, settings)
    return app


def _to_the_page(_request: Request) -> RedirectResponse:
    """With a slash: the page names its files from there."""
    return RedirectResponse("/app/")


def _guarded(app: ASGIApp, whole: FastAPI, settings: Settings) -> ASGIApp:
    """One route with all that goes around it in `sleuth serve`."""
    app = ExceptionMiddleware(app, handlers=faults.HANDLERS)
    for middleware in reversed(whole.user_middleware):
        app = middleware.cls(app, *middleware.args, **middleware.kwargs)
    return app


app = beside_langgraph(Settings())
