"""Index of the entity graph: aliases and mentions of passages, as postings in one SQLite file.

It contains only facts of single passages, so the order of ingestion does not matter. All methods block: call them in a
thread.
"""

import json
import sqlite3
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from sleuth.tools.search.index import Index
from sleuth.tools.text.names import PassageNames, find_names, name_id
from sleuth.tools.types import Passage

FACTS_VERSION = 2
"""Version of the extraction; incremented when the same text gives other names, which rebuilds the index."""

_BUSY_SECONDS = 30.0
_SCHEMA = (
    "meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "passage (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, names BLOB NOT NULL)",
    "alias (name INTEGER, passage INTEGER, weight REAL, PRIMARY KEY (name, passage)) WITHOUT ROWID",
    "mention (name INTEGER, passage INTEGER, PRIMARY KEY (name, passage)) WITHOUT ROWID",
)
_RARELY = (
    "SELECT m.name, p.id FROM json_each(?) AS wanted JOIN mention AS m ON m.name = wanted.value "
    "JOIN passage AS p ON p.number = m.passage WHERE "
    "(SELECT count(*) FROM (SELECT 1 FROM mention WHERE name = wanted.value LIMIT ?)) <= ? "
    "ORDER BY m.name, p.id"
)
RARE = 50
"""A name that more passages mention is too common to connect them."""


FindNames: TypeAlias = Callable[[Sequence[Passage]], Sequence[PassageNames]]


class Alias(NamedTuple):
    """A passage with an alias, the alias' weight and the number of passages that share it."""

    passage: str
    weight: float
    sharing: int


class GraphIndex(Index):
    """Names in one collection's passages."""

    name = "entity graph"
    _place: Path

    def __init__(self, file: Path, find_names: FindNames = find_names) -> None:
        self._place = file
        self._find_names = find_names
        self._turn = threading.Lock()
        with self._storing("opened"):
            self._db = self._open()

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._db.close()

    def refresh(self) -> None:
        """Do nothing: commits of other processes are visible immediately."""

    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        """Add and remove passages in one transaction; repeating it changes nothing."""
        analyzed = self._find_names(upsert)
        with self._writing() as db:
            _remove(db, [*delete, *(passage.id for passage in upsert)])
            alias_rows: list[tuple[int, int, float]] = []
            mention_rows: list[tuple[int, int]] = []
            for passage, (aliases, mentions) in zip(upsert, analyzed, strict=True):
                values = passage.id, array("q", mentions).tobytes()
                number = db.execute("INSERT INTO passage (id, names) VALUES (?, ?)", values).lastrowid or 0
                alias_rows += [(name, number, weight) for name, weight in aliases.items()]
                mention_rows += [(name, number) for name in mentions]
            db.executemany("INSERT INTO alias VALUES (?, ?, ?)", sorted(alias_rows))
            db.executemany("INSERT INTO mention VALUES (?, ?)", sorted(mention_rows))

    def clear(self) -> None:
        """Delete all entries."""
        with self._writing() as db:
            _empty(db)

    def count(self) -> int:
        """Return the number of passages."""
        return int(self._read("SELECT count(*) FROM passage")[0][0])

    def ids(self) -> set[str]:
        """Return the ids of all passages."""
        return {row[0] for row in self._read("SELECT id FROM passage")}

    def known_as(self, names: Iterable[int]) -> dict[int, list[Alias]]:
        """Return the passages with each of these aliases (by number); unknown aliases are omitted."""
        rows = self._read(
            "SELECT a.name, p.id, a.weight FROM json_each(?) AS wanted JOIN alias AS a ON a.name = wanted.value "
            "JOIN passage AS p ON p.number = a.passage ORDER BY a.name, p.id",
            json.dumps(list(names)),
        )
        grouped = {name: list(group) for name, group in groupby(rows, key=lambda row: row[0])}
        entries = {
            name: [Alias(id_, weight, len(group)) for _, id_, weight in group if self._is_allowed(id_)]
            for name, group in grouped.items()
        }
        return {name: aliases for name, aliases in entries.items() if aliases}

    def mentioning(self, names: Iterable[str], *, at_most: int) -> dict[str, list[str]]:
        """Return the passages that mention each of these names, except names mentioned by more than `at_most`."""
        by_id = {name_id(name): name for name in names}
        rows = self._read(_RARELY, json.dumps(list(by_id)), at_most + 1, at_most)
        return {
            by_id[name]: [id_ for _, id_ in group if self._is_allowed(id_)]
            for name, group in groupby(rows, key=lambda row: row[0])
        }

    def mentioning_among(self, names: Iterable[str], ids: Sequence[str]) -> dict[str, list[str]]:
        """Return which of the given passages mention each of these names."""
        by_id = {name_id(name): name for name in names}
        if not by_id:
            return {}
        rows = self._read(
            "SELECT m.name, p.id FROM json_each(?) AS among CROSS JOIN passage AS p ON p.id = among.value "
            "CROSS JOIN json_each(?) AS wanted "
            "CROSS JOIN mention AS m ON m.name = wanted.value AND m.passage = p.number ORDER BY m.name, p.id",
            json.dumps(list(ids)),
            json.dumps(list(by_id)),
        )
        return {by_id[name]: [id_ for _, id_ in group] for name, group in groupby(rows, key=lambda row: row[0])}

    def _is_allowed(self, passage: str) -> bool:
        return self._allowed is None or passage in self._allowed

    def _open(self) -> sqlite3.Connection:
        self._place.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._place, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        # Everything here can be made again from the catalogue, so a commit need not wait for the disk.
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("BEGIN IMMEDIATE")
        for table in _SCHEMA:
            db.execute(f"CREATE TABLE IF NOT EXISTS {table}")
        db.execute("CREATE INDEX IF NOT EXISTS alias_passage ON alias (passage)")
        if db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() != (FACTS_VERSION,):
            _empty(db)
        db.execute("COMMIT")
        return db

    def _remember(self, **values: int) -> None:
        with self._writing() as db:
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def _number(self, name: str) -> int:
        rows = self._read("SELECT value FROM meta WHERE key = ?", name)
        return int(rows[0][0]) if rows else 0

    def _read(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        with self._turn, self._storing("read"):
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Run all changes in one transaction."""
        with self._turn, self._storing("written"):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk has ended it
                    self._db.execute("ROLLBACK")
                raise


def _empty(db: sqlite3.Connection) -> None:
    for table in ("meta", "passage", "alias", "mention"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608  # names of our own
    db.execute("INSERT INTO meta VALUES ('version', ?)", (FACTS_VERSION,))


def _remove(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    rows = db.execute(
        "SELECT number, names FROM passage WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
    ).fetchall()
    for number, names in rows:
        db.executemany(
            "DELETE FROM mention WHERE name = ? AND passage = ?", [(name, number) for name in array("q", names)]
        )
        db.execute("DELETE FROM alias WHERE passage = ?", (number,))
        db.execute("DELETE FROM passage WHERE number = ?", (number,))
