"""Values of the catalogue's rows. A damaged cell is an error that names it, or is skipped if it can be derived."""

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from sqlalchemy import Row

from sleuth.tools.errors import StoreDamaged
from sleuth.tools.types import Document, Passage

Kept = TypeVar("Kept", Document, Passage)

_log = logging.getLogger(__name__)
_NUMBERS = {"start", "end"}
METADATA = ("author", "date", "language", "tags")
"""Columns of a document that are not compared with its former version, and null until they are read."""


def parse_row(kind: type[Kept], row: Row[Any]) -> Kept:
    """Return a row as a document or passage.

    Raises:
        StoreDamaged: a cell has another type than its column; the message names the document.
    """
    values = row._mapping
    for name in kind.__dataclass_fields__:
        optional = name in METADATA and values[name] is None
        if not (optional or isinstance(values[name], int if name in _NUMBERS else str)):
            document = str(values["id"] if kind is Document else values["document_id"])
            raise StoreDamaged(
                f"The document {document} is damaged in the catalogue (the {name} of its {kind.__name__.lower()} "
                f"{values['id']} is {values[name]!r:.80}).",
                advice=f"Delete it with `sleuth docs delete {document}` and ingest its file again.",
            )
    found = {name: values[name] for name in kind.__dataclass_fields__}
    return kind(**found | ({"tags": parse_tags(found["tags"])} if kind is Document else {}))


def cells_of(kept: Document | Passage) -> dict[str, object]:
    """Return the cells of a document or passage: the inverse of `parse_row`."""
    cells = {name: getattr(kept, name) for name in kept.__dataclass_fields__}
    return cells | (metadata_cells(kept) if isinstance(kept, Document) else {})


def parse_tags(cell: str | None) -> tuple[str, ...] | None:
    """Return the tags in a cell; None if they are not known."""
    return None if cell is None else tuple(filter(None, str(cell).split("\n")))


def metadata_cells(document: Document) -> dict[str, str | None]:
    """Return the cells of a document's metadata."""
    tags = None if document.tags is None else "\n".join(document.tags)
    return {"author": document.author, "date": document.date, "language": document.language, "tags": tags}


def parse_readable(rows: Iterable[Row[Any]]) -> Iterator[Passage]:
    """Yield rows as passages; skip damaged ones and log them."""
    for row in rows:
        try:
            yield parse_row(Passage, row)
        except StoreDamaged as error:
            _log.warning("%s", error)


def is_same(document: Document, row: Row[Any] | None) -> bool:
    """Return whether a row exists and equals a document, apart from owner, time and metadata."""
    if row is None or not isinstance(row.added_at, str):
        return False
    names = [name for name in Document.__dataclass_fields__ if name not in {"owner", "added_at", *METADATA}]
    return all(row._mapping[name] == getattr(document, name) for name in names)


def parse_ids(cell: str) -> tuple[str, ...] | None:
    """Return the ids in a cell; None if it is damaged."""
    found = _json(cell)
    return tuple(found) if isinstance(found, list) and all(isinstance(each, str) for each in found) else None


def parse_triples(cell: str) -> list[tuple[str, str, str]] | None:
    """Return the triples in a cell; None if it is damaged."""
    found = _json(cell)
    if not isinstance(found, list):
        return None
    whole = (isinstance(one, list) and len(one) == 3 and all(isinstance(part, str) for part in one) for one in found)
    return [(one[0], one[1], one[2]) for one in found] if all(whole) else None


def parse_number(cell: object) -> int:
    """Return the number in a cell; 0 if it is empty or damaged."""
    try:
        return int(str(cell))
    except ValueError:
        return 0


def _json(cell: str) -> object:
    try:
        return json.loads(cell)
    except (TypeError, ValueError, RecursionError):
        return None
