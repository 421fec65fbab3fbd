"""`sleuth methods`."""

from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from sleuth.graphs.core.method import Method
from sleuth.graphs.registry import METHODS, runnable
from sleuth.studio.console.output import JsonOption, emit

_COLORS = {"as published": "green", "our reading": "cyan", "deviates": "yellow", "not implemented": "red"}


def methods(
    name: Annotated[str | None, typer.Argument(help="A method, to see how it follows its paper.")] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List the methods with their papers, nodes and settings, or show how one follows its paper."""
    if name:
        method = runnable(name)
        emit(_json(method), as_json, Group(_in_words(method), _parts(method)))
        return
    emit([_json(method) for method in METHODS.values()], as_json, Group(*map(_in_words, METHODS.values())))


def _json(method: Method) -> dict[str, object]:
    settings = [
        {"name": name, "default": field.default, "help": field.description}
        for name, field in method.settings.model_fields.items()
    ]
    return {
        "name": method.name,
        "line": method.line,
        "paper": method.paper,
        "when": method.when,
        "baseline": method.baseline,
        "typical_calls": method.calls,
        "nodes": method.nodes(),
        "settings": settings,
        "parts": [part.model_dump() for part in method.parts.values()],
    }


def _in_words(method: Method) -> Text:
    text = Text.assemble((method.name, "bold cyan"), f": {method.line}{' (baseline)' if method.baseline else ''}\n")
    text.append(f"  paper: {method.paper}\n  when:  {method.when}\n  nodes: {' → '.join(method.nodes())}\n")
    text.append(f"  calls: {method.calls}\n" if method.calls else "")
    for name, field in method.settings.model_fields.items():
        text.append(f"  --set {name}={field.default} ".ljust(36)).append(f"{field.description}\n", "dim")
    return text


def _parts(method: Method) -> Text:
    """Return the parts of the paper, each with its status under `profile=paper`."""
    text = Text("parts of the paper, with profile=paper:\n" if method.parts else "")
    for part in method.parts.values():
        text.append(f"  {part.status}: ".ljust(19), _COLORS[part.status]).append(f"{part.part} ({part.source})")
        text.append(f"; {', '.join(part.settings)}" if part.settings else "", "cyan").append("\n")
        text.append(f"{' ' * 19}{part.note}\n" if part.note else "", "dim")
    return text
