"""The chat page: built files of the package."""

from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

router = APIRouter(include_in_schema=False)

POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"
"""Policy that loads nothing from other hosts and forbids frames."""

DIST = Path(str(files("sleuth.studio"))) / "web" / "dist"


@router.get("/")
def index() -> Response:
    """Return the page."""
    return _file(DIST / "index.html")


@router.get("/assets/{name}")
def asset(name: str) -> Response:
    """Return a file of the page; its name changes with its content."""
    return _file(DIST / "assets" / name, cache="public, max-age=31536000, immutable")


@router.get("/embed.js")
def embed() -> Response:
    """Return the chat of other pages."""
    return _file(DIST / "embed.js")


@router.get("/{name}")
def icon(name: str) -> Response:
    """Return the icon of the page."""
    return _file(DIST / (name if name.startswith("favicon.") else ""))


def _file(file: Path, *, cache: str = "no-cache") -> Response:
    try:
        exists = file.is_file()
    except OSError:  # its name is too long
        exists = False
    if not exists:
        raise HTTPException(404, "This path does not exist.")
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": cache}
    return FileResponse(file, headers=headers)
