"""Metadata of documents: their listing, their updates, and the passages that a filter leaves.

All methods block: call them in a thread.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, select, update

from sleuth.tools.storage.database import transaction
from sleuth.tools.storage.filters import Filter
from sleuth.tools.storage.rows import METADATA, metadata_cells, parse_row, parse_tags
from sleuth.tools.storage.schema import documents, increment, meta, passages, rows_of
from sleuth.tools.types import Document

LISTED = ("id", "title", "source", "media_type", "added_at", *METADATA)
"""Columns of a document in a listing."""
_IDS_PER_STATEMENT = 500


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
            ids = self._matching(connection, where)
            starts = range(0, len(ids), _IDS_PER_STATEMENT)
            parts = (query.where(passages.c.document_id.in_(ids[at : at + _IDS_PER_STATEMENT])) for at in starts)
            return frozenset(id_ for part in parts for id_ in connection.scalars(part))

    def version(self) -> int:
        """Return a number that changes with each change of metadata that the journal does not record."""
        with transaction(self._engine) as connection:
            return int(connection.scalar(select(meta.c.value).where(meta.c.key == _key(self._place))) or 0)

    def _matching(self, connection: Connection, where: Filter) -> list[str]:
        columns = [documents.c[name].label(f"{name}_") for name in where.columns]
        rows = connection.execute(select(documents.c.id, *columns).where(*rows_of(documents, self._place)))
        return [row[0] for row in rows if where.matches(dict(zip(where.columns, row[1:], strict=True)))]


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
