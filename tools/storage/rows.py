"""Cells of the catalogue's rows as values: a damaged cell is named, or left out where it can be made again."""

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


def made(kind: type[Kept], row: Row[Any]) -> Kept:
    """Return a row as a document or passage.

    Raises:
        StoreDamaged: a cell has another type than its column; the message names the document.
    """
    values = row._mapping
    for name in kind.__dataclass_fields__:
        if not isinstance(values[name], int if name in _NUMBERS else str):
            document = str(values["id"] if kind is Document else values["document_id"])
            raise StoreDamaged(
                f"The document {document} is damaged in the catalogue (the {name} of its {kind.__name__.lower()} "
                f"{values['id']} is {values[name]!r:.80}).",
                advice=f"Delete it with `sleuth docs delete {document}` and ingest its file again.",
            )
    return kind(**{name: values[name] for name in kind.__dataclass_fields__})


def readable(rows: Iterable[Row[Any]]) -> Iterator[Passage]:
    """Return rows as passages; damaged ones are left out and named in the log."""
    for row in rows:
        try:
            yield made(Passage, row)
        except StoreDamaged as error:
            _log.warning("%s", error)


def is_same(document: Document, row: Row[Any] | None) -> bool:
    """Whether a row is there and has what a document has, whoever put it in and whenever."""
    if row is None or not isinstance(row.added_at, str):
        return False
    names = [name for name in Document.__dataclass_fields__ if name not in {"owner", "added_at"}]
    return all(row._mapping[name] == getattr(document, name) for name in names)


def ids_in(cell: str) -> tuple[str, ...] | None:
    """Return the ids that a cell lists; None where it is damaged."""
    found = _json(cell)
    return tuple(found) if isinstance(found, list) and all(isinstance(each, str) for each in found) else None


def triples_in(cell: str) -> list[tuple[str, str, str]] | None:
    """Return the triples that a cell lists; None where it is damaged."""
    found = _json(cell)
    if not isinstance(found, list):
        return None
    whole = (isinstance(one, list) and len(one) == 3 and all(isinstance(part, str) for part in one) for one in found)
    return [(one[0], one[1], one[2]) for one in found] if all(whole) else None


def number_in(cell: object) -> int:
    """Return the number that a cell holds; 0 where there is none, or where it is damaged."""
    try:
        return int(str(cell))
    except ValueError:
        return 0


def _json(cell: str) -> object:
    try:
        return json.loads(cell)
    except (TypeError, ValueError, RecursionError):
        return None
