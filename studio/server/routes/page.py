"""The chat page: built files of the package."""

import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"
"""Policy that loads nothing from other hosts and forbids frames."""

UNBUILT = """<!doctype html><meta charset="utf-8"><title>sleuth</title>
<p>The page is not built: <code>npm ci && npm run build</code> in <code>studio/web</code>. The API is described at
<a href="/openapi.json">/openapi.json</a>.</p>"""


def _dist() -> Traversable:
    return files("sleuth.studio").joinpath("web", "dist")


@router.get("/", response_class=HTMLResponse)
def index() -> Response:
    """Return the page."""
    page = _dist().joinpath("index.html")
    return _file(page) if page.is_file() else HTMLResponse(UNBUILT)


@router.get("/assets/{name}")
def asset(name: str) -> Response:
    """Return a file of the page; its name changes with its content."""
    file = _dist().joinpath("assets", name)
    if "/" in name or name.startswith(".") or not file.is_file():
        raise HTTPException(404, "The file does not exist.")
    response = _file(file)
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return response


@router.get("/{name}")
def icon(name: str) -> Response:
    """Return the icon of the page."""
    file = _dist().joinpath(name)
    if not name.startswith("favicon.") or not file.is_file():
        raise HTTPException(404, "This path does not exist.")
    return _file(file)


def _file(file: Traversable) -> Response:
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
    return Response(file.read_bytes(), media_type=kind, headers=headers)
