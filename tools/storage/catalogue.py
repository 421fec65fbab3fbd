"""The source of truth of a collection: documents, passages and the journal of all changes to them.

The indexes are derived from it and follow the journal. All methods block: call them in a thread.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)

from sleuth.tools.errors import UnknownName, UsageError, needs_part
from sleuth.tools.storage.database import batches, transaction
from sleuth.tools.storage.filters import Filter
from sleuth.tools.storage.id_prefix import MAX_CANDIDATES, complete_id, select_similar
from sleuth.tools.storage.schema import (
    collections,
    delete_orphaned_triples,
    documents,
    journal,
    meta,
    originals,
    parse_row,
    passages,
    prepare_tables,
    rows_of,
)
from sleuth.tools.types import Document, Passage, now

if TYPE_CHECKING:
    from sleuth.tools.storage.triples import SqlTriples

ChangeKind = Literal["add", "delete"]
Difference = Literal["added", "updated", "unchanged"]

METADATA = ("author", "date", "language", "tags", "meta")
"""Columns of a document that are not compared with its former version."""
LISTED = ("id", "title", "source", "media_type", "added_at", *METADATA)
"""Columns of a document in a listing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A document and its passages, in order; `original` is the SHA-256 of its file if a copy is kept.

    `given`: own fields that do not come from the file; the next ingest keeps them, and removes an empty one.
    """

    document: Document
    passages: tuple[Passage, ...]
    original: str = ""
    given: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One row of the journal: passages of a document that were added or deleted, with its sequence number."""

    seq: int
    kind: ChangeKind
    document_id: str
    passage_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """Numbers of new, changed and unchanged documents of a batch, and of the passages that were added.

    `differences`: what happened to each document, by id.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    passages: int = 0
    differences: Mapping[str, Difference] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A document in a listing, without its text; `passages` is their number."""

    id: str
    title: str
    source: str
    media_type: str
    added_at: str
    passages: int
    author: str = ""
    date: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, str] = field(default_factory=dict)


def _with_given(entry: Entry, row: Row[Any] | None) -> Entry:
    """Return an entry whose document has the given fields too, those of its former version included."""
    own_fields = {**(row.given_meta if row else {}), **entry.given}
    own_fields = {name: text for name, text in own_fields.items() if text}
    return replace(
        entry, given=own_fields, document=replace(entry.document, meta={**entry.document.meta, **own_fields})
    )


def _differences(batch: Mapping[str, Entry], rows: Mapping[str, Row[Any]]) -> dict[str, Difference]:
    """Return the difference of each document to its row, apart from owner, time and metadata."""
    names = [name for name in Document.__dataclass_fields__ if name not in {"owner", "added_at", *METADATA}]
    differences: dict[str, Difference] = dict.fromkeys(batch, "added")
    for id_, row in rows.items():
        is_same = all(row._mapping[name] == getattr(batch[id_].document, name) for name in names)
        differences[id_] = "unchanged" if is_same else "updated"
    return differences


class Catalogue:
    """Documents and passages of one owner's collection, in SQLite or Postgres."""

    def __init__(self, engine: Engine, *, owner: str, collection: str) -> None:
        self.owner = owner
        self.collection = collection
        self.place = {"owner": owner, "collection": collection}
        self.engine = engine
        try:
            with self._begin(write=True) as connection:
                prepare_tables(connection)
        except BaseException:
            self.engine.dispose()
            raise

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def put_documents(self, entries: Sequence[Entry]) -> Stored:
        """Store a batch in one transaction. The last of equal ids wins.

        Of an unchanged document only new metadata is stored.
        """
        batch = {entry.document.id: entry for entry in entries}
        with self._begin(write=True) as connection:
            rows = {row.id: row for row in self._select(connection, documents, documents.c.id, list(batch))}
            batch = {id_: _with_given(entry, rows.get(id_)) for id_, entry in batch.items()}
            differences = _differences(batch, rows)
            changed = [entry for id_, entry in batch.items() if differences[id_] != "unchanged"]
            same = [entry for id_, entry in batch.items() if differences[id_] == "unchanged"]
            self._update_metadata(connection, same, rows)
            old = self._replace(connection, changed)
            self._put_originals(connection, batch.values())
            new = {passage.id: passage.fingerprint() for entry in changed for passage in entry.passages}
            self._record(connection, "delete", {id_: doc for id_, (doc, mark) in old.items() if new.get(id_) != mark})
            entered = {
                passage.id: entry.document.id
                for entry in changed
                for passage in entry.passages
                if passage.id not in old or old[passage.id][1] != new[passage.id]
            }
            self._record(connection, "add", entered)
            self._forget(connection, [mark for _, mark in old.values()])
        count, unchanged = Counter(differences.values()), len(entries) - len(changed)
        counts = {"added": count["added"], "updated": count["updated"], "unchanged": unchanged}
        return Stored(**counts, passages=len(entered), differences=differences)

    def compare(self, entries: Sequence[Entry]) -> dict[str, Difference]:
        """Return what `put_documents` would do with each document, by id; store nothing."""
        batch = {entry.document.id: entry for entry in entries}
        return _differences(batch, {row.id: row for row in self._documents(list(batch))})

    def delete_documents(self, ids: Sequence[str]) -> int:
        """Delete documents with their passages; return their number."""
        with self._begin(write=True) as connection:
            gone = self._select(connection, passages, passages.c.document_id, ids)
            self._record(connection, "delete", {row.id: row.document_id for row in gone})
            deleted = self._delete(connection, documents, documents.c.id, ids)
            self._forget(connection, [row.content_hash for row in gone])
        return deleted

    def get_document(self, document_id: str) -> Document:
        """Return a document with its text; raise UnknownName if it does not exist."""
        for row in self._documents([document_id]):
            return parse_row(Document, row)
        before, after = select_similar(self._mine(documents, documents.c.id), documents.c.id, document_id)
        known = [*self._column(before), *self._column(after)]
        raise UnknownName("document", document_id, known, "`sleuth docs list` shows the documents.")

    def complete_id(self, prefix: str) -> str:
        """Return the id of the document with this id, or with one that begins so, or with this path or its end.

        Without such a document it is returned unchanged.

        Raises:
            UsageError: several documents begin with it, or have this path.
        """
        begun = self._mine(documents, documents.c.id).where(documents.c.id.startswith(prefix, autoescape=True))
        ids = self._column(begun.order_by(documents.c.id).limit(MAX_CANDIDATES))
        if id := complete_id("document", prefix, ids):
            return id
        end = f"/{prefix.removeprefix('./').removeprefix('/')}"
        ending = self._mine(documents, documents.c.id).where(documents.c.source.endswith(end, autoescape=True))
        ids = self._column(ending.order_by(documents.c.id).limit(MAX_CANDIDATES))
        if len(ids) > 1:
            raise UsageError(f"{len(ids)} documents have the path {prefix}: {', '.join(ids)}. Use an id.")
        return ids[0] if ids else prefix

    def list_documents(
        self, *, limit: int = 100, after: str = "", find: str = "", where: Filter | None = None
    ) -> list[Listed]:
        """Return documents with `find` in their title that match a filter, ordered by id.

        `after` is the last id of the previous page.
        """
        own = self._mine(passages, func.count()).where(passages.c.document_id == documents.c.id)
        count = own.scalar_subquery()
        query = self._mine(documents, *(documents.c[name] for name in LISTED), count.label("passages"))
        query = query.where(documents.c.id > after, documents.c.title.icontains(find, autoescape=True))
        if where is None:
            return [parse_row(Listed, row) for row in self._all(query.order_by(documents.c.id).limit(limit))]
        self._check_fields(where)
        with self._begin() as connection:
            rows = connection.execute(query.order_by(documents.c.id))
            return [
                parse_row(Listed, row) for row in islice((row for row in rows if where.matches(row._asdict())), limit)
            ]

    def matching_passages(self, where: Filter) -> frozenset[str]:
        """Return the ids of the passages of the documents that match a filter."""
        self._check_fields(where)
        rows = self._all(self._mine(documents, *(documents.c[name] for name in LISTED)))
        ids = [row.id for row in rows if where.matches(row._asdict())]
        query = self._mine(passages, passages.c.id)
        return frozenset(self._column(*(query.where(passages.c.document_id.in_(part)) for part in batches(ids))))

    def _check_fields(self, where: Filter) -> None:
        own = self._column(self._mine(documents, documents.c.meta).where(documents.c.meta != {}).distinct())
        where.check_fields({name for meta in own for name in meta})

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages with these ids, in this order, without deleted ones."""
        with self._begin() as connection:
            by_id = {row.id: parse_row(Passage, row) for row in self._select(connection, passages, passages.c.id, ids)}
        return [by_id[id_] for id_ in ids if id_ in by_id]

    def passages_of(self, document_id: str) -> list[Passage]:
        """Return the passages of a document, in order."""
        mine = self._mine(passages).where(passages.c.document_id == document_id)
        return [parse_row(Passage, row) for row in self._all(mine.order_by(passages.c.ordinal))]

    def passage_ids(self) -> set[str]:
        """Return the ids of all passages."""
        return set(self._column(self._mine(passages, passages.c.id)))

    def is_empty(self) -> bool:
        """Return whether the collection has no passage."""
        return not self._column(self._mine(passages, passages.c.id).limit(1))

    def original(self, document_id: str) -> str | None:
        """Return the SHA-256 of the file of a document; None if no copy is kept."""
        query = self._mine(originals, originals.c.hash).where(originals.c.document_id == document_id)
        return next(iter(self._column(query)), None)

    def originals_in_use(self) -> set[str]:
        """Return the SHA-256 of every kept file of the owner, in all collections."""
        return set(self._column(select(originals.c.hash).where(originals.c.owner == self.owner)))

    def id(self) -> str:
        """Return a random id that this catalogue gets at the first call."""
        query = select(meta.c.value).where(meta.c.key == "id")
        if not (ids := self._column(query)):
            with self._begin(write=True) as connection:
                if not (ids := [*connection.scalars(query)]):
                    ids = [uuid4().hex]
                    connection.execute(insert(meta).values(key="id", value=ids[0]))
        return str(ids[0])

    def count_documents(self) -> int:
        """Return the number of documents."""
        return int(self._column(self._mine(documents, func.count()))[0])

    def count_passages(self) -> int:
        """Return the number of passages."""
        return int(self._column(self._mine(passages, func.count()))[0])

    def ids_of_sources(self, sources: Sequence[str]) -> dict[str, str]:
        """Return the ids of the documents from these sources, by source."""
        with self._begin() as connection:
            return {row.source: row.id for row in self._select(connection, documents, documents.c.source, sources)}

    def sources_of_ids(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the sources of those of the documents that exist, by id."""
        return {row.id: str(row.source) for row in self._documents(ids)}

    def content_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the hashes of the texts of documents, by id."""
        query = self._mine(documents, documents.c.id, documents.c.content_hash)
        rows = self._all(*(query.where(documents.c.id.in_(part)) for part in batches(ids)))
        return {row.id: row.content_hash for row in rows}

    def copies(self, ids: Sequence[str]) -> dict[str, str]:
        """Return, by id, the source of the first document with the same text, for those that have one before them."""
        own = self.content_hashes(ids)
        query = self._mine(documents, documents.c.id, documents.c.source, documents.c.content_hash)
        order = query.order_by(documents.c.added_at.desc(), documents.c.id.desc())
        rows = self._all(*(order.where(documents.c.content_hash.in_(part)) for part in batches(sorted(own.values()))))
        first = {row.content_hash: row for row in rows}
        return {id: first[mark].source for id, mark in own.items() if mark in first and first[mark].id != id}

    def passages_of_copies(self) -> list[dict[str, list[str]]]:
        """Return, for each text of several documents, their passages by document, the first ingested one first."""
        hashes = self._mine(documents, documents.c.content_hash).group_by(documents.c.content_hash)
        columns = documents.c.content_hash, documents.c.id, passages.c.id.label("passage")
        query = self._mine(documents, *columns).order_by(documents.c.added_at, documents.c.id)
        is_copy = documents.c.content_hash.in_(hashes.having(func.count() > 1))
        own = *rows_of(passages, self.place), passages.c.document_id == documents.c.id
        copies: dict[str, dict[str, list[str]]] = {}
        for row in self._all(query.where(is_copy, *own)):
            copies.setdefault(row.content_hash, {}).setdefault(row.id, []).append(row.passage)
        return list(copies.values())

    def sources_below(self, folder: str) -> dict[str, str]:
        """Return the sources that begin with a folder's path and a separator, by id of the document."""
        query = self._mine(documents, documents.c.id, documents.c.source)
        rows = self._all(query.where(documents.c.source.startswith(folder, autoescape=True)))
        return {row.id: row.source for row in rows if row.source.startswith(folder)}  # SQLite ignores case

    def head(self) -> int:
        """Return the sequence number of the last change; 0 before the first."""
        return int(self._column(self._mine(journal, func.max(journal.c.seq)))[0] or 0)

    def changes(self, since: int, *, limit: int = 512) -> list[Change]:
        """Return the next changes after a sequence number, until they name about `limit` passages."""
        query = self._mine(journal).where(journal.c.seq > since).order_by(journal.c.seq).limit(limit)
        page: list[Change] = []
        named = 0
        with self._begin() as connection:
            for row in connection.execute(query):
                ids = tuple(json.loads(row.passage_ids))
                page.append(Change(seq=row.seq, kind=row.kind, document_id=row.document_id, passage_ids=ids))
                named += len(ids)
                if named >= limit:
                    break
        return page

    def embedder(self) -> str | None:
        """Return the name of the embedder that this collection was built with; None before the first ingest."""
        return next(iter(self._column(select(collections.c.embedder).where(*self._own_row()))), None)

    def set_embedder(self, name: str) -> None:
        """Store the name of the embedder, in place of the previous one."""
        with self._begin(write=True) as connection:
            if not connection.execute(update(collections).where(*self._own_row()).values(embedder=name)).rowcount:
                row = {"owner": self.owner, "name": self.collection, "embedder": name}
                connection.execute(insert(collections).values(row))

    def triples(self, *, model: str = "") -> "SqlTriples":
        """Return the triples in this collection's passages; only methods that concern one model need its name."""
        with needs_part("triples", "A store of triples"):
            from sleuth.tools.storage.triples import SqlTriples

        return SqlTriples(self.engine, self.place, model=model)

    def _begin(self, *, write: bool = False) -> AbstractContextManager[Connection]:
        return transaction(self.engine, write=write)

    def _all(self, *queries: Select[Any]) -> list[Row[Any]]:
        with self._begin() as connection:
            return [row for query in queries for row in connection.execute(query)]

    def _column(self, *queries: Select[Any]) -> list[Any]:
        return [row[0] for row in self._all(*queries)]

    def _documents(self, ids: Sequence[str]) -> list[Row[Any]]:
        with self._begin() as connection:
            return self._select(connection, documents, documents.c.id, ids)

    def _own_row(self) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        return collections.c.owner == self.owner, collections.c.name == self.collection

    def _mine(self, table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
        return select(*(columns or (table,))).where(*rows_of(table, self.place))

    def _select(
        self, connection: Connection, table: Table, column: ColumnElement[str], values: Sequence[str]
    ) -> list[Row[Any]]:
        mine = self._mine(table)
        return [row for part in batches(values) for row in connection.execute(mine.where(column.in_(part)))]

    def _delete(self, connection: Connection, table: Table, column: ColumnElement[str], values: Sequence[str]) -> int:
        mine = delete(table).where(*rows_of(table, self.place))
        return sum(connection.execute(mine.where(column.in_(part))).rowcount for part in batches(values))

    def _update_metadata(self, connection: Connection, entries: Iterable[Entry], rows: Mapping[str, Row[Any]]) -> None:
        """Store new metadata of known documents, given with their rows, as changes of no passage."""
        for entry in entries:
            document, row = entry.document, rows[entry.document.id]
            cells = {name: getattr(document, name) for name in METADATA} | {"given_meta": entry.given}
            if any(row._mapping[name] != cells[name] for name in cells):
                own = (*rows_of(documents, self.place), documents.c.id == document.id)
                connection.execute(update(documents).where(*own).values(cells))
                change = {"kind": "add", "document_id": document.id, "passage_ids": "[]", "at": now()}
                connection.execute(insert(journal), self.place | change)

    def _replace(self, connection: Connection, entries: Sequence[Entry]) -> dict[str, tuple[str, str]]:
        """Replace documents; return the document and fingerprint of each old passage by id."""
        ids = [entry.document.id for entry in entries]
        old = self._select(connection, passages, passages.c.document_id, ids)
        self._delete(connection, documents, documents.c.id, ids)
        document_rows = [asdict(entry.document) | {"given_meta": entry.given} | self.place for entry in entries]
        passage_rows = [
            asdict(passage) | self.place | {"ordinal": ordinal, "content_hash": passage.fingerprint()}
            for entry in entries
            for ordinal, passage in enumerate(entry.passages)
        ]
        for table, rows in ((documents, document_rows), (passages, passage_rows)):
            if rows:
                connection.execute(insert(table), rows)
        return {row.id: (row.document_id, row.content_hash) for row in old}

    def _put_originals(self, connection: Connection, entries: Iterable[Entry]) -> None:
        files = {entry.document.id: entry.original for entry in entries if entry.original}
        self._delete(connection, originals, originals.c.document_id, list(files))
        if files:
            rows = [self.place | {"document_id": id_, "hash": name} for id_, name in files.items()]
            connection.execute(insert(originals), rows)

    def _forget(self, connection: Connection, fingerprints: Sequence[str]) -> None:
        for part in batches(fingerprints):
            delete_orphaned_triples(connection, self.place, part)

    def _record(self, connection: Connection, kind: ChangeKind, changed: Mapping[str, str]) -> None:
        """Append to the journal, one row per document; `changed` maps passage ids to document ids."""
        by_document: dict[str, list[str]] = {}
        for passage_id, document_id in changed.items():
            by_document.setdefault(document_id, []).append(passage_id)
        common = self.place | {"kind": kind, "at": now()}
        rows = [common | {"document_id": key, "passage_ids": json.dumps(ids)} for key, ids in by_document.items()]
        if rows:
            connection.execute(insert(journal), rows)
