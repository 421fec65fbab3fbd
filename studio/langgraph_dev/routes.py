"""The routes of `sleuth serve` inside `langgraph dev` (`http.app` in langgraph.json).

Our middleware applies to our routes only; LangGraph's authentication and error handling are unchanged. The page is at
/app. Routes whose paths LangGraph uses are omitted.
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
from sleuth.studio.server.schemas import errors
from sleuth.tools.settings import Settings

TAKEN = {"/metrics", "/mcp", "/openapi.json", "/", "/{name}", "/assets/{name}"}
"""Paths that LangGraph uses or may use; those of the page are mounted under /app."""


def mount_routes(settings: Settings) -> FastAPI:
    """Return the application with the routes /v1, /healthz and /app."""
    whole = create_app(settings)
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, lifespan=whole.router.lifespan_context)
    app.include_router(page.router, prefix="/app")
    app.add_route("/app", _redirect_to_page)
    ours = [route for route in whole.routes if isinstance(route, Route) and route.path not in TAKEN]
    app.router.routes.extend(ours)
    for route in app.router.routes:
        assert isinstance(route, Route | APIRoute)
        route.app = _with_middleware(route.app, whole)
    return app


def _redirect_to_page(_request: Request) -> RedirectResponse:
    """Add the slash, to which the paths of the page's files are relative."""
    return RedirectResponse("/app/")


def _with_middleware(app: ASGIApp, whole: FastAPI) -> ASGIApp:
    """Wrap one route in the middleware and error handlers of `sleuth serve`."""
    app = ExceptionMiddleware(app, handlers=errors.HANDLERS)
    for middleware in reversed(whole.user_middleware):
        app = middleware.cls(app, *middleware.args, **middleware.kwargs)
    return app


app = mount_routes(Settings())
