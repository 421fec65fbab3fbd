"""Analysis of passages as a task of a worker process, with JSON values.

Little is imported here: each worker process begins with it.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import Any, Literal

from sleuth.tools.text.language import detect_language
from sleuth.tools.text.names import PassageNames, find_names
from sleuth.tools.text.stemming import find_terms
from sleuth.tools.types import Passage

Analysis = Literal["terms", "names", "languages"]


def analyze(given: dict[str, Any], _bounds: object = None) -> dict[str, Any]:
    """Return the results for the rows of a call.

    Args:
        given: `kind`, an `Analysis`, and `rows`: document id, title and text of each passage, or only the text if its
            language is wanted; `detected`, see `find_terms`.

    Returns:
        `found`: keyword terms, names (see `parse_names`), or the language of each row, empty if it is uncertain.
    """
    kinds: dict[Analysis, Callable[[Sequence[Any]], list[Any]]] = {
        "terms": lambda rows: find_terms(_passages(rows), given["detected"]),
        "names": lambda rows: [_format_names(names) for names in find_names(_passages(rows))],
        "languages": lambda rows: [detect_language(text) or "" for (text,) in rows],
    }
    return {"found": kinds[given["kind"]](given["rows"])}


def parse_names(row: list[Any]) -> PassageNames:
    """Return the names in a result of `analyze`."""
    aliases, mentions = row
    return PassageNames(dict(aliases), array("q", bytes.fromhex(mentions)))


def _passages(rows: Sequence[tuple[str, str, str]]) -> list[Passage]:
    return [
        Passage(id="", document_id=document_id, title=title, text=text, start=0, end=len(text))
        for document_id, title, text in rows
    ]


def _format_names(names: PassageNames) -> list[Any]:
    return [list(names.aliases.items()), array("q", names.mentions).tobytes().hex()]
