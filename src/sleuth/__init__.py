"""Multi-hop question answering over your own documents, as durable LangGraph state machines.

    import sleuth

    answer = await sleuth.ask("Who taught the architect of the bridge?", method="par-rag")

`sleuth.open` keeps everything open for many questions; `sleuth.graph` gives a method's uncompiled `StateGraph`.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sleuth.graphs.core.answer import Answer as Answer, Citation as Citation, Note as Note
    from sleuth.graphs.core.context import Budget as Budget, Context as Context, RunOptions as RunOptions
    from sleuth.graphs.core.events import Delta as Delta, Reset as Reset, Step as Step
    from sleuth.tools.ingestion.ingestion import IngestReport as IngestReport
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
    )
    from sleuth.studio.client.sleuth import Sleuth as Sleuth
    from sleuth.studio.client.sleuth import open_sleuth as open
    from sleuth.tools.errors import SleuthError as SleuthError
    from sleuth.tools.settings import Settings as Settings
    from sleuth.tools.storage.catalogue import Listed as Listed
    from sleuth.tools.types import Hit as Hit, Passage as Passage


_PUBLIC = {
    "Answer": "sleuth.graphs.core.answer.Answer",
    "Citation": "sleuth.graphs.core.answer.Citation",
    "Note": "sleuth.graphs.core.answer.Note",
    "Budget": "sleuth.graphs.core.context.Budget",
    "Context": "sleuth.graphs.core.context.Context",
    "Delta": "sleuth.graphs.core.events.Delta",
    "Reset": "sleuth.graphs.core.events.Reset",
    "Step": "sleuth.graphs.core.events.Step",
    "IngestReport": "sleuth.tools.ingestion.ingestion.IngestReport",
    "METHODS": "sleuth.graphs.registry.METHODS",
    "CheckpointView": "sleuth.graphs.runs.history.CheckpointView",
    "sync": "sleuth.studio.client.sync",
    "as_retriever": "sleuth.studio.client.functions.as_retriever",
    "as_tool": "sleuth.studio.client.functions.as_tool",
    "ask": "sleuth.studio.client.functions.ask",
    "delete": "sleuth.studio.client.functions.delete",
    "documents": "sleuth.studio.client.functions.documents",
    "fork": "sleuth.studio.client.functions.fork",
    "graph": "sleuth.studio.client.functions.graph",
    "history": "sleuth.studio.client.functions.history",
    "ingest": "sleuth.studio.client.functions.ingest",
    "resume": "sleuth.studio.client.functions.resume",
    "search": "sleuth.studio.client.functions.search",
    "stream": "sleuth.studio.client.functions.stream",
    "RunOptions": "sleuth.graphs.core.context.RunOptions",
    "Sleuth": "sleuth.studio.client.sleuth.Sleuth",
    "open": "sleuth.studio.client.sleuth.open_sleuth",
    "SleuthError": "sleuth.tools.errors.SleuthError",
    "Settings": "sleuth.tools.settings.Settings",
    "Listed": "sleuth.tools.storage.catalogue.Listed",
    "Hit": "sleuth.tools.types.Hit",
    "Passage": "sleuth.tools.types.Passage",
}
"""The place of each public name, as in the imports above, which only type checkers execute."""

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> object:
    """Import a public name at its first use, so that `import sleuth` is fast."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'sleuth' has no attribute {name!r}")
    return resolve_name(_PUBLIC[name])


def __dir__() -> list[str]:
    """List the public names, for `help(sleuth)` and completion."""
    return __all__
