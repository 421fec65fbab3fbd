"""Write diagrams, settings and papers' parts of all methods into the documentation: `python -m sleuth.graphs.diagrams`.

A Markdown file marks the places: `<!-- graph:NAME -->` to `<!-- /graph -->`, `<!-- settings:NAME -->` to
`<!-- /settings -->`, `<!-- fidelity:NAME -->` to `<!-- /fidelity -->`.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from langgraph.graph import END, START, StateGraph

from sleuth.graphs.chat import graph as chat
from sleuth.graphs.core import Method
from sleuth.graphs.registry import CHAT, METHODS

Graph = StateGraph[Any, Any, Any, Any]

_BLOCK = re.compile(r"(<!-- (graph|settings|fidelity):([\w-]+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
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
        for branch in graph.branches.get(node, {}).values():
            router: Any = branch.path
            yield from ((node, "-.->", after) for after in _choices(get_type_hints(router.func)["return"]))


def _choices(hint: object) -> tuple[str, ...]:
    """Return the nodes in a router's return type: a Literal, or a list of one."""
    return _choices(get_args(hint)[0]) if get_origin(hint) is list else get_args(hint)


def settings_table(method: Method) -> str:
    """Return a method's settings as a Markdown table: default, value in the paper profile where it differs, meaning."""
    default = method.settings()
    paper = default.as_in_paper()
    lines = ["| setting | default | `paper` profile | meaning |", "| --- | --- | --- | --- |"]
    for name, description in method.settings.descriptions().items():
        value, published = getattr(default, name), getattr(paper, name)
        differs = "" if value == published else _code(published)
        meaning = description.replace("|", "\\|")
        lines.append(f"| `{name}` | {_code(value)} | {differs} | {meaning} |")
    return "\n".join(lines)


def fidelity_table(method: Method) -> str:
    """Return the parts of a method's paper as a Markdown table: source, status, code and settings."""
    lines = ["| part | in the paper | status | code | settings |", "| --- | --- | --- | --- | --- |"]
    default, paper = method.settings(), method.settings().as_in_paper()
    home = f"{method.settings.__module__.rpartition('.')[0].removeprefix('sleuth.')}."
    for each in method.parts.values():
        status = f"{each.status}: {each.note}" if each.note else each.status
        code = ", ".join(f"`{name.removeprefix(home)}`" for name in each.code)
        settings = ", ".join(_setting(name, getattr(default, name), getattr(paper, name)) for name in each.settings)
        cells = (cell.replace("|", "\\|") for cell in (each.part, each.source, status, code, settings))
        lines.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return "\n".join(lines)


def _setting(name: str, default: object, paper: object) -> str:
    differs = "" if default == paper else f" {_code(paper)} (default {_code(default) or 'none'})"
    return f"`{name}`{differs}"


def _code(value: object) -> str:
    return "" if value in (None, "") else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def redraw(text: str) -> str:
    """Return a document with its marked diagrams and tables replaced by the current ones."""
    known, methods = graphs(), METHODS | {CHAT.name: CHAT}
    contents = {
        "graph": lambda name: f"```mermaid\n{mermaid(known[name])}\n```",
        "settings": lambda name: settings_table(methods[name]),
        "fidelity": lambda name: fidelity_table(methods[name]),
    }

    def block(found: re.Match[str]) -> str:
        start, kind, name, end = found.groups()
        return f"{start}{contents[kind](name)}\n{end}"

    return _BLOCK.sub(block, text)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else Path("docs").rglob("*.md"):
        path.write_text(redraw(path.read_text(encoding="utf-8")), encoding="utf-8")
