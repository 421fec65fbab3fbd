"""The filter of the list of runs, and its query."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, cast, func, literal, or_, select, tuple_
from sqlalchemy.dialects.postgresql import JSONB

from sleuth.graphs.persistence.tables import threads
from sleuth.graphs.persistence.thread import to_stored_json


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """A filter of the list of runs; an empty field does not filter.

    `find`: the question or answer contains each of these words. `since` and `until`: last changed from and
    before these times (ISO 8601, UTC). `before` and `before_id`: after this run in the list, the latest first.
    `weak`: the sources support the answer only weakly. `part_of`: sub-runs of this run. `metadata`: items that a client
    has stored with the run. `offset`: runs to skip. `with_empty`: also chats in which nothing was asked.
    """

    find: str = ""
    outcomes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    before: str = ""
    before_id: str = ""
    with_subruns: bool = True
    with_empty: bool = True
    weak: bool = False
    part_of: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    offset: int = 0


ALL_RUNS = RunFilter()


def select_runs(
    owner: str, run_filter: RunFilter, limit: int | None, *, lost: Collection[str] = (), dialect: str = "sqlite"
) -> Select[Any]:
    """Return the query for an owner's runs, the latest first; `lost` runs are stopped, but stored as running."""
    columns = threads.c
    metadata = (has_item(columns.client_metadata, *item, dialect=dialect) for item in run_filter.metadata.items())
    query = select(threads).where(columns.owner == owner, *_conditions(run_filter, lost), *metadata)
    return query.order_by(columns.updated_at.desc(), columns.id.desc()).limit(limit).offset(run_filter.offset or None)


def _conditions(run_filter: RunFilter, lost: Collection[str]) -> Iterator[ColumnElement[bool]]:
    columns = threads.c
    for word in re.findall(r"\w+", run_filter.find):
        forms = word, word.capitalize()  # SQLite ignores the case of English letters only
        texts = (columns.question, columns.answer)
        yield or_(*(text.icontains(form, autoescape=True) for text in texts for form in forms))
    if run_filter.outcomes:
        yield _has_outcome(run_filter.outcomes, lost)
    if run_filter.weak:
        yield columns.weak
    if run_filter.methods:
        yield columns.method.in_(run_filter.methods)
    if run_filter.part_of:
        yield and_(columns.parent == run_filter.part_of, columns.subrun > 0)
    if not run_filter.with_subruns:
        yield columns.subrun == 0
    if not run_filter.with_empty:
        yield columns.question != ""
    yield from _times(run_filter)


def _has_outcome(outcomes: tuple[str, ...], lost: Collection[str]) -> ColumnElement[bool]:
    stored = threads.c.outcome.in_(outcomes)
    if not lost:
        return stored
    is_lost = threads.c.id.in_(lost)
    return or_(stored, is_lost) if "stopped" in outcomes else and_(stored, ~is_lost)


def _times(run_filter: RunFilter) -> Iterator[ColumnElement[bool]]:
    columns = threads.c
    if run_filter.since:
        yield columns.updated_at >= run_filter.since
    if run_filter.until:
        yield columns.updated_at < run_filter.until
    if run_filter.before_id:
        yield tuple_(columns.updated_at, columns.id) < tuple_(run_filter.before, run_filter.before_id)
    elif run_filter.before:
        yield columns.updated_at < run_filter.before


MAX_METADATA_OF_OWNER = 16 << 20
"""Characters of the metadata of all threads of an owner."""


def has_item(column: Column[str], key: str, value: Any, *, dialect: str) -> ColumnElement[bool]:  # noqa: ANN401 - JSON
    """Return the condition that a column's JSON object has an item."""
    stored = to_stored_json(value)
    if dialect == "postgresql":
        return cast(column, JSONB)[key] == cast(literal(stored), JSONB)
    item = func.json_each(column).table_valued("key", "value", "type")
    same: list[ColumnElement[bool]] = [item.c.key == key]
    match value:
        case None | bool():
            same.append(item.c.type == stored)
        case dict() | list():
            same += [item.c.type.in_(("object", "array")), item.c.value == stored]
        case str():
            same += [item.c.type == "text", item.c.value == value]
        case _:
            same += [item.c.type.in_(("integer", "real")), item.c.value == value]
    return select(literal(1)).select_from(item).where(*same).exists()
