"""Multi-hop question answering over your own documents, as durable LangGraph state machines.

    import sleuth

    answer = await sleuth.ask("Who taught the architect of the bridge?", method="par-rag")

`sleuth.open` keeps everything open for many questions; `sleuth.graph` gives a method's uncompiled `StateGraph`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sleuth.graphs.core.answer import Answer as Answer, Citation as Citation, Note as Note
    from sleuth.graphs.core.context import Budget as Budget, Context as Context
    from sleuth.graphs.core.events import Delta as Delta, Reset as Reset, Step as Step
    from sleuth.graphs.ingestion.pipeline import IngestReport as IngestReport
    from sleuth.graphs.registry import METHODS as METHODS
    from sleuth.graphs.runs.history import CheckpointView as CheckpointView
    from sleuth.studio.client import sync as sync
    from sleuth.studio.client.functions import (
        as_retriever as as_retriever,
        as_tool as as_tool,
        ask as ask,
        delete as delete,
        documents as documents,
        fork as fork,
        graph as graph,
        history as history,
        ingest as ingest,
        resume as resume,
        search as search,
        stream as stream,
        tool as tool,
    )
    from sleuth.studio.client.sleuth import RunOptions as RunOptions, Sleuth as Sleuth
    from sleuth.studio.client.sleuth import open_sleuth as open
    from sleuth.tools.errors import SleuthError as SleuthError
    from sleuth.tools.settings import Settings as Settings
    from sleuth.tools.storage import Listed as Listed
    from sleuth.tools.types import Hit as Hit, Passage as Passage

_WHERE = {
    "graphs.core.answer": ("Answer", "Citation", "Note"),
    "graphs.core.context": ("Budget", "Context"),
    "graphs.core.events": ("Delta", "Reset", "Step"),
    "graphs.ingestion.pipeline": ("IngestReport",),
    "graphs.registry": ("METHODS",),
    "graphs.runs.history": ("CheckpointView",),
    "studio.client.functions": (
        *("as_retriever", "as_tool", "ask", "delete", "documents", "fork", "graph", "history", "ingest", "resume"),
        *("search", "stream", "tool"),
    ),
    "studio.client.sleuth": ("RunOptions", "Sleuth", "open"),
    "tools.errors": ("SleuthError",),
    "tools.settings": ("Settings",),
    "tools.storage.catalogue": ("Listed",),
    "tools.types": ("Hit", "Passage"),
}
"""The modules of the public names."""
_CALLED = {"open": "open_sleuth"}

__all__ = sorted(["sync", *(name for names in _WHERE.values() for name in names)])  # noqa: PLE0605


def __getattr__(name: str) -> object:
    """Import a public name at its first use, so that `import sleuth` is fast."""
    if name == "sync":
        return import_module("sleuth.studio.client.sync")
    module = next((module for module, names in _WHERE.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'sleuth' has no attribute {name!r}")
    return getattr(import_module(f"sleuth.{module}"), _CALLED.get(name, name))


def __dir__() -> list[str]:
    """List the public names, for `help(sleuth)` and completion."""
    return __all__
