"""Assistants: the chat and each method, with default settings. A run passes other settings as its `context`."""

from typing import Any
from uuid import UUID, uuid5

from fastapi import APIRouter

from sleuth.graphs.core.method import Method
from sleuth.graphs.registry import METHODS, OTHERS
from sleuth.studio.server.langgraph_api.forms import AssistantSearch, JsonRoute
from sleuth.tools.errors import UnknownName

router = APIRouter(prefix="/assistants", route_class=JsonRoute)

_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The namespace in which LangGraph Server names the default assistant of a graph."""

GRAPHS = {**OTHERS, **METHODS}
"""All graphs by name: the chat first, which clients show as the default."""

_CREATED = "1970-01-01T00:00:00+00:00"
"""Assistants are part of a release; clients expect a time."""


def assistant_id_of(graph: str) -> str:
    """Return the id of a graph's assistant."""
    return str(uuid5(_NAMESPACE, graph))


def find_graph(assistant: str) -> Method:
    """Return the graph of an assistant's id or of a graph's name.

    Raises:
        UnknownName: there is no such assistant.
    """
    for graph in GRAPHS.values():
        if assistant in (graph.name, assistant_id_of(graph.name)):
            return graph
    raise UnknownName("assistant", assistant, list(GRAPHS), f"There are: {', '.join(GRAPHS)}.")


def _view(graph: Method) -> dict[str, Any]:
    return {
        "assistant_id": assistant_id_of(graph.name),
        "graph_id": graph.name,
        "name": graph.name,
        "description": graph.line,
        "config": {},
        "context": {},
        "metadata": {"created_by": "system"},
        "version": 1,
        "created_at": _CREATED,
        "updated_at": _CREATED,
    }


@router.post("/search")
def search(form: AssistantSearch) -> list[dict[str, Any]]:
    """List assistants."""
    views = [_view(graph) for graph in GRAPHS.values() if form.graph_id in (None, graph.name)]
    return views[form.offset : form.offset + form.limit]


@router.get("/{assistant}")
def get(assistant: str) -> dict[str, Any]:
    """Return an assistant."""
    return _view(find_graph(assistant))
