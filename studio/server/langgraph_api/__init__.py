"""LangGraph Server's API under `/langgraph`: LangGraph's SDKs and `useStream` talk to the same runs as `/v1`."""

from importlib.metadata import version

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from sleuth.studio.server.langgraph_api import assistants, protocol, runs, threads
from sleuth.tools.errors import DISTRIBUTION

__all__ = ["router"]

router = APIRouter(prefix="/langgraph", include_in_schema=False)
"""LangGraph documents these routes; the OpenAPI description of sleuth has those of `/v1`."""


@router.get("/info")
def info() -> dict[str, object]:
    """Return the versions, and which groups of routes exist."""
    flags = {"assistants": True, "crons": False, "store": False, "langsmith": False}
    return {"version": version(DISTRIBUTION), "langgraph_py_version": version("langgraph"), "flags": flags}


for _topic in (assistants, threads, runs, protocol):
    router.include_router(_topic.router)


@router.api_route("/{path:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
def refuse(path: str) -> None:
    """Refuse a route of LangGraph Server that sleuth does not have.

    Raises:
        HTTPException: always, with status 501.
    """
    raise HTTPException(
        501, f"sleuth does not support /{path} of LangGraph's API. It has assistants (read only), threads and runs."
    )
