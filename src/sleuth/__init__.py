"""Multi-hop question answering over your own documents, as durable LangGraph state machines.

    import sleuth

    answer = await sleuth.ask("Who taught the architect of the bridge?", method="par-rag")

`sleuth.open` keeps everything open for many questions; `sleuth.graph` gives a method's uncompiled `StateGraph`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sleuth.graphs.core.answer import Answer, Citation, Note
    from sleuth.graphs.core.events import Delta, Reset, Step
    from sleuth.graphs.registry import METHODS
    from sleuth.graphs.core.context import Budget, Context
    from sleuth.studio.client.sleuth import Sleuth, ask, graph, stream, tool
    from sleuth.studio.client.sleuth import open_sleuth as open
    from sleuth.tools.errors import SleuthError
    from sleuth.tools.settings import Settings

_WHERE = {
    "Answer": "graphs.core.answer",
    "Citation": "graphs.core.answer",
    "Note": "graphs.core.answer",
    "METHODS": "graphs.registry",
    "Delta": "graphs.core.events",
    "Reset": "graphs.core.events",
    "Step": "graphs.core.events",
    "Budget": "graphs.core.context",
    "Context": "graphs.core.context",
    "Sleuth": "studio.client.sleuth",
    "ask": "studio.client.sleuth",
    "graph": "studio.client.sleuth",
    "stream": "studio.client.sleuth",
    "tool": "studio.client.sleuth",
    "open": "studio.client.sleuth",
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
    """Import a public name at its first use, so that `import sleuth` is fast."""
    if name not in _WHERE:
        raise AttributeError(f"module 'sleuth' has no attribute {name!r}")
    return getattr(import_module(f"sleuth.{_WHERE[name]}"), _CALLED.get(name, name))
