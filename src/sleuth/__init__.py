"""Multi-hop question answering over your own documents, as durable LangGraph state machines.

    import sleuth

    answer = await sleuth.ask("Who taught the architect of the bridge?", method="par-rag")

`sleuth.open` keeps everything open for many questions; `sleuth.graph` gives a method's uncompiled `StateGraph`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sleuth.graphs.answer import Answer, Citation, Note
    from sleuth.graphs.events import Delta, Reset, Step
    from sleuth.graphs.registry import METHODS
    from sleuth.graphs.state import Budget, Context
    from sleuth.studio.client import Sleuth, ask, graph, stream, tool
    from sleuth.studio.client import open_sleuth as open
    from sleuth.tools.errors import SleuthError
    from sleuth.tools.settings import Settings

_WHERE = {
    "Answer": "graphs.answer",
    "Citation": "graphs.answer",
    "Note": "graphs.answer",
    "METHODS": "graphs.registry",
    "Delta": "graphs.events",
    "Reset": "graphs.events",
    "Step": "graphs.events",
    "Budget": "graphs.state",
    "Context": "graphs.state",
    "Sleuth": "studio.client",
    "ask": "studio.client",
    "graph": "studio.client",
    "stream": "studio.client",
    "tool": "studio.client",
    "open": "studio.client",
    "SleuthError": "tools.errors",
    "Settings": "tools.settings",
}
_CALLED = {"open": "open_sleuth"}

__all__ = [
    "METHODS",
    "Answer",
    "Budget",
    "Citation",
    "Context",
    "Delta",
    "Note",
    "Reset",
    "Settings",
    "Sleuth",
    "SleuthError",
    "Step",
    "ask",
    "graph",
    "open",
    "stream",
    "tool",
]


def __getattr__(name: str) -> object:
    """Loads a public name when it is first used: `import sleuth` itself takes no time."""
    if name not in _WHERE:
        raise AttributeError(f"module 'sleuth' has no attribute {name!r}")
    return getattr(import_module(f"sleuth.{_WHERE[name]}"), _CALLED.get(name, name))
