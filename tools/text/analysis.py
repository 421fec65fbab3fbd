"""Analysis of passages as a task of a worker process, with JSON values.

Little is imported here: each worker process begins with it.
"""

from array import array
from typing import Any, Literal

from sleuth.tools.text.names import PassageNames, find_names
from sleuth.tools.text.stemming import find_terms
from sleuth.tools.types import Passage

Analysis = Literal["terms", "names"]


def analyze(given: dict[str, Any], _bounds: object = None) -> dict[str, Any]:
    """Return the results for the rows of a call.

    Args:
        given: `kind`, an `Analysis`, and `rows`: document id, title and text of each passage; `detected`, see
            `find_terms`.

    Returns:
        `found`: keyword terms or names (see `parse_names`) of each row.
    """
    passages = [
        Passage(id="", document_id=document_id, title=title, text=text, start=0, end=len(text))
        for document_id, title, text in given["rows"]
    ]
    if given["kind"] == "terms":
        return {"found": find_terms(passages, given["detected"])}
    found = find_names(passages)
    return {"found": [[list(each.aliases.items()), array("q", each.mentions).tobytes().hex()] for each in found]}


def parse_names(row: list[Any]) -> PassageNames:
    """Return the names in a result of `analyze`."""
    aliases, mentions = row
    return PassageNames(dict(aliases), array("q", bytes.fromhex(mentions)))
