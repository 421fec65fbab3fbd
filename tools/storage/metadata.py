"""Documents as rows, and their metadata: their listing, their updates, and the passages that a filter leaves.

All methods block: call them in a thread.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Row, select, update

from sleuth.tools.storage.database import batches, transaction
from sleuth.tools.storage.filters import Filter
from sleuth.tools.storage.schema import counter, documents, increment, passages, rows_of
from sleuth.tools.types import Document, Passage

Kept = TypeVar("Kept", Document, Passage)

METADATA = ("author", "date", "language", "tags")
"""Columns of a document that are not compared with its former version, and null until they are read."""
LISTED = ("id", "title", "source", "media_type", "added_at", *METADATA)
"""Columns of a document in a listing."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A document in a listing, without its text; `passages` is their number."""

    id: str
    title: str
    source: str
    media_type: str
    added_at: str
    passages: int
    author: str | None = None
    date: str | None = None
    language: str | None = None
    tags: tuple[str, ...] | None = None


def parse_listed(row: Row[Any]) -> Listed:
    """Return a row as a document in a listing."""
    cells = {name: row._mapping[name] for name in LISTED}
    return Listed(**{**cells, "tags": parse_tags(cells["tags"])}, passages=row.passages)


class SqlMetadata:
    """Metadata of the documents of one collection."""

    def __init__(self, engine: Engine, place: Mapping[str, str]) -> None:
        self._engine = engine
        self._place = place

    def store(self, found: Sequence[Document]) -> int:
        """Store the metadata of documents by their ids; return the number of those that had other metadata."""
        with transaction(self._engine, write=True) as connection:
            known = {}
            for document in found:
                own = select(documents).where(*rows_of(documents, self._place), documents.c.id == document.id)
                if (row := connection.execute(own).first()) is not None:
                    known[document.id] = row
            return update_metadata(connection, self._place, found, known)

    def documents(self, *, after: str, limit: int, missing: bool) -> list[Document]:
        """Return documents after an id, ordered by id; `missing`: only those of an older release, without metadata."""
        query = select(documents).where(*rows_of(documents, self._place), documents.c.id > after)
        if missing:
            query = query.where(documents.c.language.is_(None))
        with transaction(self._engine) as connection:
            return [parse_row(Document, row) for row in connection.execute(query.order_by(documents.c.id).limit(limit))]

    def passages(self, where: Filter) -> frozenset[str]:
        """Return the ids of the passages of the documents that match a filter."""
        query = select(passages.c.id).where(*rows_of(passages, self._place))
        with transaction(self._engine) as connection:
            columns = [documents.c[name].label(f"{name}_") for name in where.columns]
            rows = connection.execute(select(documents.c.id, *columns).where(*rows_of(documents, self._place)))
            ids = [row[0] for row in rows if where.matches(dict(zip(where.columns, row[1:], strict=True)))]
            parts = (query.where(passages.c.document_id.in_(part)) for part in batches(ids))
            return frozenset(id_ for part in parts for id_ in connection.scalars(part))

    def version(self) -> int:
        """Return a number that changes with each change of metadata that the journal does not record."""
        with transaction(self._engine) as connection:
            return counter(connection, _key(self._place))


def update_metadata(
    connection: Connection, place: Mapping[str, str], found: Iterable[Document], known: Mapping[str, Row[Any]]
) -> int:
    """Store the metadata of known documents, given with their rows; return the number of those that it changes."""
    changed = 0
    for document in found:
        cells, row = metadata_cells(document), known.get(document.id)
        if (
            row is not None
            and cells["language"] is not None
            and any(row._mapping[name] != cells[name] for name in cells)
        ):
            own = update(documents).where(*rows_of(documents, place), documents.c.id == document.id)
            connection.execute(own.values(cells))
            changed += 1
    if changed:
        increment(connection, _key(place), 1)
    return changed


def _key(place: Mapping[str, str]) -> str:
    return f"metadata:{place['owner']}:{place['collection']}"
