"""Triples of passages, stored in the catalogue by the content of the passage, so that no passage is read twice.

Triples belong to one model and one version of the prompt. They are deleted with the last passage of that content.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, Engine, Table, delete, insert, select

from sleuth.tools.storage.database import in_thread, transaction
from sleuth.tools.storage.rows import parse_triples
from sleuth.tools.storage.schema import increment, passages, rows_of, triples

Triple = tuple[str, str, str]
"""Subject, predicate and object."""

_MOST_ROWS = 1000
"""Limit of passages for one name."""


class TripleStore(Protocol):
    """Store of triples by the fingerprints of passages and the version of the prompt."""

    async def get(self, fingerprints: Iterable[str], *, version: str) -> dict[str, list[Triple]]:
        """Return the triples of those passages that were read before; a passage without any has an empty list."""
        ...

    async def put(self, found: Mapping[str, Sequence[Triple]], *, version: str) -> None:
        """Store the triples of passages that were read."""
        ...


class MemoryTriples:
    """A store for tests and for graphs that run without a catalogue."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], list[Triple]] = {}

    async def get(self, fingerprints: Iterable[str], *, version: str) -> dict[str, list[Triple]]:
        """Return the triples of those passages that were read before; a passage without any has an empty list."""
        return {mark: self.kept[version, mark] for mark in fingerprints if (version, mark) in self.kept}

    async def put(self, found: Mapping[str, Sequence[Triple]], *, version: str) -> None:
        """Store the triples of passages that were read."""
        self.kept.update({(version, mark): list(those) for mark, those in found.items()})


class SqlTriples:
    """Triples that one model has found in a collection, in the catalogue's database."""

    def __init__(self, engine: Engine, place: Mapping[str, str], *, model: str) -> None:
        self._engine = engine
        self._place = place
        self._model = model

    @in_thread
    def get(self, fingerprints: Iterable[str], *, version: str) -> dict[str, list[Triple]]:
        """Return the triples of those passages that were read before; a passage without any has an empty list."""
        wanted = set(fingerprints)
        query = select(triples.c.content_hash, triples.c.triples).where(
            *_at(triples, self._place, wanted), triples.c.model == self._model, triples.c.version == version
        )
        with transaction(self._engine) as connection:
            return {row.content_hash: parse_triples(row.triples) for row in connection.execute(query)}

    @in_thread
    def put(self, found: Mapping[str, Sequence[Triple]], *, version: str) -> None:
        """Store the triples of those passages that still exist: some may have been deleted since a run read them."""
        if not found:
            return
        made_by = {"model": self._model, "version": version}
        with transaction(self._engine, write=True) as connection:
            rows = [
                {**self._place, **made_by, "content_hash": mark, "triples": json.dumps(found[mark])}
                for mark in sorted(_present(connection, self._place, found))
            ]
            older = (triples.c.model == self._model, triples.c.version == version)
            connection.execute(delete(triples).where(*_at(triples, self._place, found), *older))
            if rows:
                connection.execute(insert(triples), rows)
            # Data derived from triples compares this number; deletions are in the journal.
            increment(connection, change_counter_key(self._place), 1)

    @in_thread
    def any(self) -> bool:
        """Return whether there is any triple."""
        query = select(triples.c.content_hash).where(
            *rows_of(triples, self._place), triples.c.model == self._model, triples.c.triples != "[]"
        )
        with transaction(self._engine) as connection:
            return connection.execute(query.limit(1)).first() is not None

    @in_thread
    def naming(self, text: str) -> list[tuple[Triple, str]]:
        """Return the triples with this text in subject or object, in any letter case, each with a passage id."""
        text = " ".join(text.split())
        wanted = text.casefold()
        query = (
            select(triples.c.triples, passages.c.id)
            .join(passages, triples.c.content_hash == passages.c.content_hash)
            .where(*rows_of(triples, self._place), *rows_of(passages, self._place), triples.c.model == self._model)
            .where(triples.c.triples.icontains(json.dumps(text)[1:-1], autoescape=True))
            .order_by(passages.c.id)
            .limit(_MOST_ROWS)
        )
        with transaction(self._engine) as connection:
            read = [(triple, row.id) for row in connection.execute(query) for triple in parse_triples(row.triples)]
        return [each for each in read if any(wanted in end.casefold() for end in (each[0][0], each[0][2]))]


def change_counter_key(place: Mapping[str, str]) -> str:
    """Return the key of the number of changes to a collection's triples, in the table of facts about the store."""
    return f"triples:{place['owner']}:{place['collection']}"


def delete_orphaned(connection: Connection, place: Mapping[str, str], fingerprints: Collection[str]) -> None:
    """Delete the triples of contents that no passage of the collection has."""
    kept = select(triples.c.content_hash).where(*_at(triples, place, fingerprints))
    if read := set(connection.scalars(kept)):
        gone = read - _present(connection, place, read)
        connection.execute(delete(triples).where(*_at(triples, place, gone)))


def _present(connection: Connection, place: Mapping[str, str], fingerprints: Collection[str]) -> set[str]:
    return set(connection.scalars(select(passages.c.content_hash).where(*_at(passages, place, fingerprints))))


def _at(table: Table, place: Mapping[str, str], fingerprints: Collection[str]) -> tuple[ColumnElement[bool], ...]:
    return (*rows_of(table, place), table.c.content_hash.in_(fingerprints))
