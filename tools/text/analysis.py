"""Analysis of passages as a task of a worker process, with JSON values.

Little is imported here: each worker process begins with it.
"""

from typing import Any

from sleuth.tools.text.language import find_terms
from sleuth.tools.text.names import find_names
from sleuth.tools.types import Passage


def analyze(request: dict[str, Any], _bounds: object = None) -> dict[str, Any]:
    """Return the results for the rows of a call.

    Args:
        request: `rows`: document id, title and text of each passage; `detected`, see `find_terms`.

    Returns:
        `found`: the fields of `KeywordTerms` and of `PassageNames` of each row, aliases as pairs.
    """
    passages = [
        Passage(id="", document_id=document_id, title=title, text=text, start=0, end=len(text))
        for document_id, title, text in request["rows"]
    ]
    names = [(list(each.aliases.items()), list(each.mentions)) for each in find_names(passages)]
    return {"found": list(zip(find_terms(passages, request["detected"]), names, strict=True))}
