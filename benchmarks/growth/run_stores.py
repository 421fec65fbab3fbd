"""Stores of runs for benchmarks: a SQLite file, or a Postgres database; each can be copied and compacted."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from sleuth.tools.settings import Settings

Sizes = dict[str, float]


@dataclass(frozen=True)
class OnSqlite:
    """runs.sqlite below a home."""

    url = None

    home: Path

    def settings(self) -> Settings:
        return Settings(home=self.home, runs=None, database_url=None)

    def sizes(self) -> Sizes:
        """Megabytes of the file, and of its pages in use: SQLite keeps what was freed for what comes."""
        file = self.home / "runs.sqlite"
        with closing(sqlite3.connect(file)) as connection:
            names = ("page_count", "freelist_count", "page_size")
            pages, free, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)
        return {"file_mb": file.stat().st_size / 1e6, "used_mb": (pages - free) * size / 1e6}

    @contextmanager
    def copied(self) -> Iterator["OnSqlite"]:
        copy = self.home.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.home, copy)
        yield OnSqlite(copy)
        shutil.rmtree(copy)

    def pack(self) -> None:
        with closing(sqlite3.connect(self.home / "runs.sqlite")) as connection:
            connection.execute("VACUUM")


@dataclass(frozen=True)
class OnPostgres:
    """A database of its own; the home has the locks."""

    home: Path
    url: str

    def settings(self) -> Settings:
        return Settings(home=self.home, runs=None, database_url=self.url)

    def sizes(self) -> Sizes:
        """Return the megabytes of the tables with their indexes; only packing shows how much of it is free."""
        tables = "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables"
        with psycopg.connect(self.url) as connection:
            (size,) = connection.execute(tables).fetchone() or (0,)
        return {"file_mb": int(size) / 1e6}

    @contextmanager
    def copied(self) -> Iterator["OnPostgres"]:
        parts = urlsplit(self.url)
        name = parts.path.removeprefix("/")
        server = parts._replace(path="/template1").geturl()
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name}".encode())
        yield replace(self, url=parts._replace(path=f"/{name}_copy").geturl())
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name}_copy WITH (FORCE)".encode())

    def pack(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM FULL")


RunStore = OnSqlite | OnPostgres
