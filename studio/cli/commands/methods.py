"""`sleuth methods`."""

from rich.console import Group
from rich.text import Text

from sleuth.graphs.core import Method
from sleuth.graphs.registry import METHODS
from sleuth.studio.console import JsonOption, emit


def methods(*, as_json: JsonOption = False) -> None:
    """List the methods with their papers, typical model calls, nodes and settings."""
    emit([_json(method) for method in METHODS.values()], as_json, Group(*map(_in_words, METHODS.values())))


def _json(method: Method) -> dict[str, object]:
    settings = [
        {"name": name, "default": field.default, "help": field.description}
        for name, field in method.settings.model_fields.items()
    ]
    about = {"name": method.name, "line": method.line, "paper": method.paper, "when": method.when}
    return {
        **about,
        "baseline": method.baseline,
        "typical_calls": method.calls,
        "nodes": method.nodes(),
        "settings": settings,
    }


def _in_words(method: Method) -> Text:
    text = Text.assemble((method.name, "bold cyan"), f": {method.line}{' (baseline)' if method.baseline else ''}\n")
    text.append(f"  paper: {method.paper}\n  when:  {method.when}\n  nodes: {' → '.join(method.nodes())}\n")
    text.append(f"  calls: {method.calls}\n" if method.calls else "")
    for name, field in method.settings.model_fields.items():
        text.append(f"  --set {name}={field.default} ".ljust(36)).append(f"{field.description}\n", "dim")
    return text
