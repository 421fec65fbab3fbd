"""Multi-hop question answering over your own documents, as durable LangGraph state machines.

    import sleuth

    answer = await sleuth.ask("Who taught the architect of the bridge?", method="par-rag")

`sleuth.open` keeps everything open for many questions.
"""

import ast
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sleuth.graphs.core.answer import Answer as Answer, Citation as Citation, Note as Note
    from sleuth.graphs.core.context import Budget as Budget, Context as Context, RunOptions as RunOptions
    from sleuth.graphs.core.events import Delta as Delta, Reset as Reset, Step as Step
    from sleuth.graphs.registry import METHODS as METHODS
    from sleuth.graphs.runs.history import CheckpointView as CheckpointView
    from sleuth.studio.client import sync as sync
    from sleuth.studio.client.functions import ask as ask, ingest as ingest, search as search, stream as stream
    from sleuth.studio.client.sleuth import Sleuth as Sleuth, open_sleuth as open
    from sleuth.tools.errors import SleuthError as SleuthError
    from sleuth.tools.ingestion.ingestion import IngestReport as IngestReport
    from sleuth.tools.settings import Settings as Settings
    from sleuth.tools.storage.catalogue import Listed as Listed
    from sleuth.tools.types import Hit as Hit, Passage as Passage


def _places() -> dict[str, str]:
    """Return the place of each public name, as in the imports above, which only type checkers execute."""
    imports = ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8")))
    found = [(node.module, each) for node in imports if isinstance(node, ast.ImportFrom) for each in node.names]
    return {each.asname: f"{module}.{each.name}" for module, each in found if each.asname}


_PLACES = _places()
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> object:
    """Import a public name at its first use, so that `import sleuth` is fast."""
    if name not in _PLACES:
        raise AttributeError(f"module 'sleuth' has no attribute {name!r}")
    return resolve_name(_PLACES[name])


def __dir__() -> list[str]:
    """List the public names, for `help(sleuth)` and completion."""
    return __all__
