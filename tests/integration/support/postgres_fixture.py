"""A Postgres of our own for the whole session, in a temporary folder, without TCP."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from process import running

_NOT_FOUND = "Postgres is not installed: apt-get install postgresql postgresql-contrib"


def _program(name: str) -> str | None:
    """initdb and pg_ctl are often not on the path: Debian keeps them by version."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or (str(versions[0]) if versions else None)


def _run(*command: str) -> None:
    # Postgres refuses to run as root.
    ordinary = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*ordinary, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")


def _named(name: str) -> str:
    """A program, where it is; skips, or fails where nothing may be skipped, without it."""
    if found := _program(name):
        return found
    if os.environ.get("SLEUTH_REQUIRE_ALL") == "1":
        pytest.fail(_NOT_FOUND)
    pytest.skip(_NOT_FOUND)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A URL as in SLEUTH_DATABASE_URL; SLEUTH_TEST_DATABASE_URL names a server that is there already."""
    if present := os.environ.get("SLEUTH_TEST_DATABASE_URL"):
        yield present
        return
    with _anew() as server:
        yield server.url


@pytest.fixture
def own_postgres() -> Iterator["PostgresServer"]:
    """A server that one test may stop and start again."""
    with _anew() as server:
        yield server


@contextmanager
def database(url: str) -> Iterator[str]:
    """The URL of an empty database of one's own on a server."""
    name = f"own_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def _anew() -> Iterator["PostgresServer"]:
    place = tempfile.TemporaryDirectory(prefix="sleuth-pg-", ignore_cleanup_errors=True)
    with place as folder, running(PostgresServer(Path(folder))) as server:
        yield server


class PostgresServer:
    """A server below a folder, reached by a socket in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = str(folder / "data")
        self._up = False
        self.url = f"postgresql://sleuth@/postgres?host={folder}"
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        _run(_named("initdb"), "-D", self._data, "-U", "sleuth", "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        """Waits until it answers."""
        self._control("-w", "-l", f"{self._folder}/log", "-o", f"-k {self._folder} -h ''", "start")
        self._up = True

    def stop(self) -> None:
        """Kill it immediately."""
        if self._up:
            self._control("-m", "immediate", "stop")
            self._up = False

    def _control(self, *arguments: str) -> None:
        _run(_named("pg_ctl"), "-D", self._data, *arguments)
