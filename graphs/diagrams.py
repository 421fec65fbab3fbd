"""Draw the state machines in the documentation: `python -m sleuth.graphs.diagrams`.

A Markdown file marks the places: `<!-- graph:NAME -->` to `<!-- /graph -->`.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph

from sleuth.graphs.chat import graph as chat
from sleuth.graphs.evidence.check import choices
from sleuth.graphs.registry import METHODS

Graph = StateGraph[Any, Any, Any, Any]

_BLOCK = re.compile(r"(<!-- graph:([\w-]+) -->\n).*?(<!-- /graph -->)", re.DOTALL)
_SHAPES = {START: "START([start])", END: "END([end])"}


def graphs() -> dict[str, Graph]:
    """Return every graph by name: chat and the methods."""
    return {"chat": chat.graph()} | {name: method.graph() for name, method in METHODS.items()}


def mermaid(graph: Graph) -> str:
    """Return a graph as a Mermaid flowchart: solid arrows always follow, a router chooses among dotted ones.

    LangGraph's own drawing omits the choices of a router that returns a list.
    """
    lines = [f"    {_SHAPES.get(a, a)} {arrow} {_SHAPES.get(b, b)}" for a, arrow, b in arrows(graph)]
    return "\n".join(["flowchart TD", *lines])


def arrows(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """Yield every edge as start, arrow and end; the arrow is dotted if a router chooses it."""
    for node in [START, *graph.nodes]:
        yield from ((node, "-->", after) for before, after in sorted(graph.edges) if before == node)
        yield from ((node, "-.->", after) for after in choices(graph, node))


def redraw(text: str) -> str:
    """Return a document with its marked diagrams replaced by the current ones."""
    known = graphs()
    return _BLOCK.sub(lambda found: f"{found[1]}```mermaid\n{mermaid(known[found[2]])}\n```\n{found[3]}", text)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else Path("docs").rglob("*.md"):
        path.write_text(redraw(path.read_text(encoding="utf-8")), encoding="utf-8")
