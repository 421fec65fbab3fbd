"""Triples of all models in a collection: coverage by model, triples by passage, and passages without triples.

All methods block: call them in a thread.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Engine, func, select

from sleuth.tools.storage.database import transaction
from sleuth.tools.storage.rows import parse_triples
from sleuth.tools.storage.schema import meta, passages, rows_of, triples
from sleuth.tools.storage.triples import Triple, change_counter_key
from sleuth.tools.types import Passage


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCoverage:
    """Numbers of passages that one model has read with one version of the prompt, and of triples found."""

    model: str
    version: str
    passages: int
    triples: int


class TripleStats:
    """Statistics of the triples of one owner's collection."""

    def __init__(self, engine: Engine, place: Mapping[str, str]) -> None:
        self._engine = engine
        self._place = place

    def summary(self) -> list[ModelCoverage]:
        """Return the coverage of each model and prompt, the largest first."""
        read, found = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        columns = (triples.c.model, triples.c.version, triples.c.triples)
        query = select(*columns, func.count(passages.c.id).label("passages")).join(passages, _same_content())
        query = query.where(*rows_of(triples, self._place)).group_by(*columns, triples.c.content_hash)
        with transaction(self._engine) as connection:
            for row in connection.execute(query):
                read[row.model, row.version] += row.passages
                found[row.model, row.version] += len(parse_triples(row.triples))
        coverage = [
            ModelCoverage(model=model, version=version, passages=count, triples=found[model, version])
            for (model, version), count in read.items()
        ]
        return sorted(coverage, key=lambda each: (-each.passages, each.model, each.version))

    def unread(self, *, model: str, version: str, after: str, limit: int) -> list[Passage]:
        """Return the next passages, ordered by fingerprint, that this model has not read with this prompt.

        One passage represents all with the same title and text.
        """
        read = select(triples.c.content_hash).where(
            *rows_of(triples, self._place), triples.c.model == model, triples.c.version == version
        )
        mine = rows_of(passages, self._place)
        first = (
            select(func.min(passages.c.id))
            .where(*mine, passages.c.content_hash > after, passages.c.content_hash.not_in(read))
            .group_by(passages.c.content_hash)
            .order_by(passages.c.content_hash)
            .limit(limit)
        )
        wanted = select(passages).where(*mine, passages.c.id.in_(first))
        with transaction(self._engine) as connection:
            rows = connection.execute(wanted.order_by(passages.c.content_hash)).all()
        return [Passage(**{name: row._mapping[name] for name in Passage.__dataclass_fields__}) for row in rows]

    def triples(self) -> dict[str, list[Triple]]:
        """Return the triples of all models, by passage id."""
        found: dict[str, dict[Triple, None]] = {}
        query = select(passages.c.id, triples.c.triples).join(passages, _same_content())
        query = query.where(*rows_of(triples, self._place))
        with transaction(self._engine) as connection:
            for row in connection.execute(query.order_by(passages.c.id, triples.c.model, triples.c.version)):
                found.setdefault(row.id, {}).update(dict.fromkeys(parse_triples(row.triples)))
        return {id_: list(those) for id_, those in found.items()}

    def change_counter(self) -> int:
        """Return a number that changes whenever triples are added; deletions are in the journal."""
        key = change_counter_key(self._place)
        with transaction(self._engine) as connection:
            return int(connection.scalar(select(meta.c.value).where(meta.c.key == key)) or 0)

    def fingerprints(self) -> Mapping[str, str]:
        """Return the fingerprint of each passage by id."""
        query = select(passages.c.id, passages.c.content_hash).where(*rows_of(passages, self._place))
        with transaction(self._engine) as connection:
            return {row.id: row.content_hash for row in connection.execute(query)}


def _same_content() -> ColumnElement[bool]:
    return (
        (passages.c.owner == triples.c.owner)
        & (passages.c.collection == triples.c.collection)
        & (passages.c.content_hash == triples.c.content_hash)
    )
