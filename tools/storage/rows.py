"""Values of the catalogue's rows."""

import json
from typing import Any, TypeVar

from sqlalchemy import Row

from sleuth.tools.types import Document, Passage

Kept = TypeVar("Kept", Document, Passage)

METADATA = ("author", "date", "language", "tags")
"""Columns of a document that are not compared with its former version, and null until they are read."""


def parse_row(kind: type[Kept], row: Row[Any]) -> Kept:
    """Return a row as a document or passage."""
    cells = {name: row._mapping[name] for name in kind.__dataclass_fields__}
    return kind(**cells | ({"tags": parse_tags(cells["tags"])} if kind is Document else {}))


def cells_of(kept: Document | Passage) -> dict[str, object]:
    """Return the cells of a document or passage: the inverse of `parse_row`."""
    cells = {name: getattr(kept, name) for name in kept.__dataclass_fields__}
    return cells | (metadata_cells(kept) if isinstance(kept, Document) else {})


def parse_tags(cell: str | None) -> tuple[str, ...] | None:
    """Return the tags in a cell; None if they are not known."""
    return None if cell is None else tuple(filter(None, cell.split("\n")))


def metadata_cells(document: Document) -> dict[str, str | None]:
    """Return the cells of a document's metadata."""
    tags = None if document.tags is None else "\n".join(document.tags)
    return {"author": document.author, "date": document.date, "language": document.language, "tags": tags}


def is_same(document: Document, row: Row[Any] | None) -> bool:
    """Return whether a row exists and equals a document, apart from owner, time and metadata."""
    names = [name for name in Document.__dataclass_fields__ if name not in {"owner", "added_at", *METADATA}]
    return row is not None and all(row._mapping[name] == getattr(document, name) for name in names)


def parse_triples(cell: str) -> list[tuple[str, str, str]]:
    """Return the triples in a cell."""
    return [(subject, predicate, object_) for subject, predicate, object_ in json.loads(cell)]
