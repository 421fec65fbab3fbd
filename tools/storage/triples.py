"""Triples of passages, stored in the catalogue by the content of the passage, so that no passage is read twice.

Triples belong to one model and one version of the prompt. They are deleted with the last passage of that content.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, insert, select, update

from sleuth.tools.storage.database import in_thread, transaction
from sleuth.tools.storage.schema import meta, parse_row, passages, present, rows_of, rows_with, triples
from sleuth.tools.types import Passage, Triple

_MOST_ROWS = 1000
"""Limit of passages for one name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCoverage:
    """Numbers of passages that one model has read with one version of the prompt, and of triples found."""

    model: str
    version: str
    passages: int
    triples: int


class SqlTriples:
    """Triples in the passages of one collection, in the catalogue's database.

    `get`, `put`, `any` and `naming` concern those of `model`; the other methods block.
    """

    def __init__(self, engine: Engine, place: Mapping[str, str], *, model: str) -> None:
        self._engine = engine
        self._place = place
        self._model = model
        self._counter_key = f"triples:{place['owner']}:{place['collection']}"

    @in_thread
    def get(self, fingerprints: Iterable[str], *, version: str) -> dict[str, list[Triple]]:
        """Return the triples of those passages that were read before; a passage without any has an empty list."""
        hashes = set(fingerprints)
        query = select(triples.c.content_hash, triples.c.triples).where(
            *rows_with(triples, self._place, hashes), triples.c.model == self._model, triples.c.version == version
        )
        with transaction(self._engine) as connection:
            return {row.content_hash: parse_triples(row.triples) for row in connection.execute(query)}

    @in_thread
    def put(self, extracted: Mapping[str, Sequence[Triple]], *, version: str) -> None:
        """Store the triples of those passages that still exist: some may have been deleted since a run read them."""
        if not extracted:
            return
        made_by = {"model": self._model, "version": version}
        with transaction(self._engine, write=True) as connection:
            rows = [
                {**self._place, **made_by, "content_hash": mark, "triples": json.dumps(extracted[mark])}
                for mark in sorted(present(connection, self._place, extracted))
            ]
            older = (triples.c.model == self._model, triples.c.version == version)
            connection.execute(delete(triples).where(*rows_with(triples, self._place, extracted), *older))
            if rows:
                connection.execute(insert(triples), rows)
            # Data derived from triples compares this number; deletions are in the journal.
            key, number = self._counter_key, str(self._counter(connection) + 1)
            if not connection.execute(update(meta).where(meta.c.key == key).values(value=number)).rowcount:
                connection.execute(insert(meta).values(key=key, value=number))

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
        name = text.casefold()
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
        return [each for each in read if any(name in end.casefold() for end in (each[0][0], each[0][2]))]

    def summary(self) -> list[ModelCoverage]:
        """Return the coverage of each model and prompt, the largest first."""
        read, triple_counts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        columns = (triples.c.model, triples.c.version, triples.c.triples)
        query = select(*columns, func.count(passages.c.id).label("passages")).join(passages, _same_content())
        query = query.where(*rows_of(triples, self._place)).group_by(*columns, triples.c.content_hash)
        with transaction(self._engine) as connection:
            for row in connection.execute(query):
                read[row.model, row.version] += row.passages
                triple_counts[row.model, row.version] += len(parse_triples(row.triples))
        coverage = [
            ModelCoverage(model=model, version=version, passages=count, triples=triple_counts[model, version])
            for (model, version), count in read.items()
        ]
        return sorted(coverage, key=lambda each: (-each.passages, each.model, each.version))

    def unread(self, *, version: str, after: str, limit: int) -> list[Passage]:
        """Return the next passages, ordered by fingerprint, that `model` has not read with this prompt.

        One passage represents all with the same title and text.
        """
        read = select(triples.c.content_hash).where(
            *rows_of(triples, self._place), triples.c.model == self._model, triples.c.version == version
        )
        mine = rows_of(passages, self._place)
        first = (
            select(func.min(passages.c.id))
            .where(*mine, passages.c.content_hash > after, passages.c.content_hash.not_in(read))
            .group_by(passages.c.content_hash)
            .order_by(passages.c.content_hash)
            .limit(limit)
        )
        query = select(passages).where(*mine, passages.c.id.in_(first))
        with transaction(self._engine) as connection:
            rows = connection.execute(query.order_by(passages.c.content_hash)).all()
        return [parse_row(Passage, row) for row in rows]

    def all(self) -> dict[str, list[Triple]]:
        """Return the triples of all models, by passage id."""
        by_passage: dict[str, dict[Triple, None]] = {}
        query = select(passages.c.id, triples.c.triples).join(passages, _same_content())
        query = query.where(*rows_of(triples, self._place))
        with transaction(self._engine) as connection:
            for row in connection.execute(query.order_by(passages.c.id, triples.c.model, triples.c.version)):
                by_passage.setdefault(row.id, {}).update(dict.fromkeys(parse_triples(row.triples)))
        return {id_: list(those) for id_, those in by_passage.items()}

    def change_counter(self) -> int:
        """Return a number that changes whenever triples are added; deletions are in the journal."""
        with transaction(self._engine) as connection:
            return self._counter(connection)

    def _counter(self, connection: Connection) -> int:
        return int(connection.scalar(select(meta.c.value).where(meta.c.key == self._counter_key)) or 0)


def _same_content() -> ColumnElement[bool]:
    return (
        (passages.c.owner == triples.c.owner)
        & (passages.c.collection == triples.c.collection)
        & (passages.c.content_hash == triples.c.content_hash)
    )


def parse_triples(cell: str) -> list[tuple[str, str, str]]:
    """Return the triples in a cell."""
    return [(subject, predicate, object_) for subject, predicate, object_ in json.loads(cell)]
