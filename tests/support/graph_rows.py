"""Contents of an entity graph's file."""

import sqlite3
from contextlib import closing
from pathlib import Path


def graph_rows(file: Path) -> set[tuple[object, ...]]:
    """Return the aliases and mentions of all passages, by the passages' ids."""
    with closing(sqlite3.connect(file)) as db:
        aliases = db.execute("SELECT p.id, a.name, a.weight FROM alias a JOIN passage p ON p.number = a.passage")
        mentions = db.execute("SELECT p.id, m.name FROM mention m JOIN passage p ON p.number = m.passage")
        return {*aliases, *mentions}
