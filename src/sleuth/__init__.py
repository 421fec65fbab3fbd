"""Multi-hop question answering over your own documents, as durable LangGraph state machines.

    import sleuth

    answer = await sleuth.ask("Who taught the architect of the bridge?", method="par-rag")

`sleuth.open` keeps everything open for many questions; `sleuth.graph` gives a method's uncompiled `StateGraph`.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sleuth.graphs.core.answer import Answer as Answer, Citation as Citation, Note as Note
    from sleuth.graphs.core.context import Budget as Budget, Context as Context
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
        tool as tool,
    )
    from sleuth.studio.client.sleuth import RunOptions as RunOptions, Sleuth as Sleuth
    from sleuth.studio.client.sleuth import open_sleuth as open
    from sleuth.tools.errors import SleuthError as SleuthError
    from sleuth.tools.settings import Settings as Settings
    from sleuth.tools.storage.catalogue import Listed as Listed
    from sleuth.tools.types import Hit as Hit, Passage as Passage


@cache
def _public() -> dict[str, tuple[str, str]]:
    """Return the module of each public name and its name there: the imports above, which only type checkers execute."""
    import ast
    from pathlib import Path

    block = next(node for node in ast.parse(Path(__file__).read_bytes()).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {str(each.asname): (str(node.module), each.name) for node in imports for each in node.names}


def __getattr__(name: str) -> object:
    """Import a public name at its first use, so that `import sleuth` is fast."""
    if name == "__all__":
        return sorted(_public())
    if name.startswith("_") or name not in _public():
        raise AttributeError(f"module 'sleuth' has no attribute {name!r}")
    path, attribute = _public()[name]
    module = import_module(path)
    return getattr(module, attribute) if hasattr(module, attribute) else import_module(f"{path}.{attribute}")


def __dir__() -> list[str]:
    """List the public names, for `help(sleuth)` and completion."""
    return sorted(_public())
