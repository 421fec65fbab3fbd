"""Tables of the list of runs, their indexes, and the queries that list, filter and search runs."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    delete,
    insert,
    inspect,
    not_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.engine import Engine

from sleuth.tools.storage import make_tables

LONGEST_NAME = 100
MAX_ANSWER = 500
"""Characters of an answer that are stored with its run, to be listed; the checkpoints contain the whole answer."""

_MAX_WORDS, _LONGEST_WORD = 500, 40

metadata = MetaData()
threads = Table(
    "sleuth_threads",
    metadata,
    Column("id", String(LONGEST_NAME), primary_key=True),
    Column("owner", String(100), nullable=False),
    Column("method", String(40), nullable=False),
    Column("question", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("status", String(20), nullable=False),
    Column("problem", Text, nullable=False),
    Column("parent", String(LONGEST_NAME), nullable=False),
    Column("parent_checkpoint", String(100), nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("updated_at", String(40), nullable=False),
    # Null in rows of older releases, and until there is an answer.
    Column("outcome", String(20)),
    Column("verdict", String(20)),
    Column("answer", Text),
    Column("weak", Boolean),
    Column("calls", Integer),
    Column("tokens", Integer),
    Column("seconds", Float),
    # The latest of many runs are listed and filtered, and the sub-runs of one are found, without reading all of them.
    Index("sleuth_threads_latest", "owner", "updated_at", "id"),
    Index("sleuth_threads_outcome", "owner", "outcome", "updated_at", "id"),
    Index("sleuth_threads_method", "owner", "method", "updated_at", "id"),
    Index("sleuth_threads_parent", "owner", "parent"),
)

_WORD = String(_LONGEST_WORD).with_variant(String(_LONGEST_WORD, collation="C"), "postgresql")
words = Table(
    "sleuth_thread_words",
    metadata,
    Column("owner", String(100), primary_key=True),
    Column("word", _WORD, primary_key=True),
    Column("thread", String(LONGEST_NAME), primary_key=True, index=True),
)
"""The words of the question and answer of each run, in lower case: runs are found by the beginnings of their words."""

IS_SUBRUN = threads.c.options.like('%"hop": %')
"""Options are JSON, in which quotes inside of texts are escaped: only a sub-run has such a key."""


def open_tables(engine: Engine) -> None:
    """Create missing tables and indexes, and what tables of an older release lack; blocks."""
    made = not inspect(engine).has_table(words.name)
    make_tables(engine, metadata)
    with engine.execution_options(sleuth_write=True).begin() as connection:
        known = {column["name"] for column in inspect(connection).get_columns(threads.name)}
        for column in threads.columns:
            if column.name not in known:
                kind = column.type.compile(engine.dialect)
                connection.execute(text(f"ALTER TABLE {threads.name} ADD COLUMN {column.name} {kind}"))
        if made:
            _upgrade_rows(connection)
    for index in threads.indexes:
        index.create(engine, checkfirst=True)


def _upgrade_rows(connection: Connection) -> None:
    """Index the questions of runs of an older release, and record the outcomes of those that have no answer."""
    old = threads.c.outcome.is_(None)
    for before, outcome in (("new", "queued"), ("interrupted", "stopped")):
        connection.execute(update(threads).where(old, threads.c.status == before).values(outcome=outcome))
    connection.execute(update(threads).where(old, threads.c.status != "done").values(outcome=threads.c.status))
    rows = connection.execute(select(threads.c.id, threads.c.owner, threads.c.question)).all()
    for row in rows:
        add_words(connection, row.owner, row.id, row.question)


def add_words(connection: Connection, owner: str, thread: str, *texts: str) -> None:
    """Add the words of texts to those by which a run is found."""
    known = set(connection.scalars(select(words.c.word).where(words.c.thread == thread)))
    new = [word for word in _words_of(texts) if word not in known]
    if new:
        connection.execute(insert(words), [{"owner": owner, "word": word, "thread": thread} for word in new])


def remove_words(connection: Connection, thread: str) -> None:
    """Remove the words of a run."""
    connection.execute(delete(words).where(words.c.thread == thread))


def _words_of(texts: Iterable[str]) -> list[str]:
    found = (word[:_LONGEST_WORD] for each in texts for word in re.findall(r"\w+", each.casefold()))
    return list(dict.fromkeys(found))[:_MAX_WORDS]


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """A filter of the list of runs; an empty field does not filter.

    `find`: each of these words begins a word of the question or answer. `since` and `until`: last changed from and
    before these times (ISO 8601, UTC). `before` and `before_id`: after this run in the list, the latest first.
    """

    find: str = ""
    outcomes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    before: str = ""
    before_id: str = ""
    with_subruns: bool = True


def select_runs(owner: str, wanted: RunFilter, limit: int | None) -> Select[Any]:
    """Return the query for an owner's runs, the latest first."""
    columns = threads.c
    query = select(threads).where(columns.owner == owner)
    query = query.order_by(columns.updated_at.desc(), columns.id.desc()).limit(limit)
    for word in _words_of([wanted.find]):
        begun = words.c.owner == owner, words.c.word >= word, words.c.word < f"{word}\U0010ffff"
        query = query.where(columns.id.in_(select(words.c.thread).where(*begun)))
    if wanted.outcomes:
        # A stopped run may be stored as running: its process was killed.
        also = ("running",) if "stopped" in wanted.outcomes else ()
        query = query.where(columns.outcome.in_((*wanted.outcomes, *also)))
    if wanted.methods:
        query = query.where(columns.method.in_(wanted.methods))
    if wanted.since:
        query = query.where(columns.updated_at >= wanted.since)
    if wanted.until:
        query = query.where(columns.updated_at < wanted.until)
    if wanted.before_id:
        query = query.where(tuple_(columns.updated_at, columns.id) < tuple_(wanted.before, wanted.before_id))
    elif wanted.before:
        query = query.where(columns.updated_at < wanted.before)
    return query if wanted.with_subruns else query.where(not_(IS_SUBRUN))
