"""What models have read in a collection's passages, whichever model it was: counts, triples, and what is left to read.

All methods block: call them in a thread.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Engine, Table, func, select

from sleuth.tools.storage.database import transaction
from sleuth.tools.storage.rows import number_in, triples_in
from sleuth.tools.storage.schema import meta, passages, triples
from sleuth.tools.storage.triples import Triple, stamp_key
from sleuth.tools.types import Passage


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How many of the passages one model has read by one version of the prompt, and how many triples it found."""

    model: str
    version: str
    passages: int
    triples: int


class Readings:
    """The triples of one owner's collection."""

    def __init__(self, engine: Engine, *, owner: str, collection: str) -> None:
        self._engine = engine
        self._place = {"owner": owner, "collection": collection}

    def summary(self) -> list[Reading]:
        """One line for each model and prompt, those that have read most first."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        query = select(
            triples.c.model, triples.c.version, triples.c.triples, func.count(passages.c.id).label("passages")
        ).join(passages, _same_content())
        with transaction(self._engine) as connection:
            for row in connection.execute(
                query.where(*self._mine(triples)).group_by(
                    triples.c.model, triples.c.version, triples.c.content_hash, triples.c.triples
                )
            ):
                before = found.get((row.model, row.version), (0, 0))
                here = len(triples_in(row.triples) or [])
                found[row.model, row.version] = (before[0] + row.passages, before[1] + here)
        readings = [
            Reading(model=model, version=version, passages=read, triples=count)
            for (model, version), (read, count) in found.items()
        ]
        return sorted(readings, key=lambda each: (-each.passages, each.model, each.version))

    def unread(self, *, model: str, version: str, after: str, limit: int) -> list[Passage]:
        """The next passages, in the order of their fingerprints, that nobody with this name and prompt has read.

        Of passages with the same title and text one stands for all.
        """
        read = select(triples.c.content_hash).where(
            *self._mine(triples), triples.c.model == model, triples.c.version == version
        )
        first = (
            select(func.min(passages.c.id))
            .where(*self._mine(passages), passages.c.content_hash > after, passages.c.content_hash.not_in(read))
            .group_by(passages.c.content_hash)
            .order_by(passages.c.content_hash)
            .limit(limit)
        )
        wanted = select(passages).where(*self._mine(passages), passages.c.id.in_(first))
        with transaction(self._engine) as connection:
            rows = connection.execute(wanted.order_by(passages.c.content_hash)).all()
        return [Passage(**{name: row._mapping[name] for name in Passage.__dataclass_fields__}) for row in rows]

    def triples(self) -> dict[str, list[Triple]]:
        """All triples that any model has found, by the ids of the passages that they stand in."""
        found: dict[str, dict[Triple, None]] = {}
        query = select(passages.c.id, triples.c.triples).join(passages, _same_content()).where(*self._mine(triples))
        with transaction(self._engine) as connection:
            for row in connection.execute(query.order_by(passages.c.id, triples.c.model, triples.c.version)):
                found.setdefault(row.id, {}).update(dict.fromkeys(triples_in(row.triples) or []))
        return {id_: list(those) for id_, those in found.items()}

    def stamp(self) -> int:
        """A number that is another one whenever triples have come; which have gone, the journal tells."""
        key = stamp_key(**self._place)
        with transaction(self._engine) as connection:
            return number_in(connection.scalar(select(meta.c.value).where(meta.c.key == key)))

    def fingerprints(self) -> Mapping[str, str]:
        """The fingerprint of each passage by its id."""
        query = select(passages.c.id, passages.c.content_hash).where(*self._mine(passages))
        with transaction(self._engine) as connection:
            return {row.id: row.content_hash for row in connection.execute(query)}

    def _mine(self, table: Table) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        return table.c.owner == self._place["owner"], table.c.collection == self._place["collection"]


def _same_content() -> ColumnElement[bool]:
    return (
        (passages.c.owner == triples.c.owner)
        & (passages.c.collection == triples.c.collection)
        & (passages.c.content_hash == triples.c.content_hash)
    )
